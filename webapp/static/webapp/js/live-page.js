// The live page: one card per device, repainted at most once per frame and never while nobody looks.

import { get, iso } from "./api.js";
import { find } from "./dom.js";
import { showHolds, takeHolds } from "./holds.js";
import { config, now, t, words } from "./page.js";
import { LiveSocket } from "./socket.js";
import { drawSpark, pushed } from "./spark.js";
import { showStale } from "./stale.js";
import { dressChip } from "./timeline-rows.js";

/** @import { Ring } from "./spark.js" */
/** @import { Row } from "./store.js" */
/** @import { Verdict } from "./timeline-rows.js" */

/**
 * @typedef {object} Live
 * @property {string} uuid
 * @property {string | null} at
 * @property {Verdict} verdict
 * @property {{ id: number, owner: { username: string, name: string } | null, end: string } | null} booking
 * @property {number | null} utilization_percent
 * @property {number | null} memory_used_bytes
 * @property {number | null} memory_total_bytes
 * @property {number | null} temperature_c
 * @property {number | null} power_w
 * @property {{ pid: number, owner: string | null, memory_bytes: number | null }[]} processes
 * @property {Ring} [ring]
 */

const GB = 2 ** 30;
// The chip and the holder say all that there is to say.
const PLAIN = new Set(["free", "in_use"]);
const ACCUSING = new Set(["unbooked_use", "foreign_use"]);
const cards = find("#cards", HTMLElement);
/** @type {Map<string, Live>} */
const latest = new Map();
/** @type {Map<string, Ring>} */
const rings = new Map();
/** @type {Set<string>} */
const changed = new Set();
let framed = false;

/** @param {Live[]} devices */
function take(devices) {
  for (const device of devices) {
    latest.set(device.uuid, device);
    changed.add(device.uuid);
    if (device.ring) rings.set(device.uuid, device.ring);
    else if (device.at) {
      const point = [Math.round(Date.parse(device.at) / 1_000), device.utilization_percent];
      const ring = rings.get(device.uuid) ?? [];
      rings.set(device.uuid, pushed(ring, /** @type {[number, number | null]} */ (point)));
    }
  }
  if (framed || document.hidden) return;
  framed = true;
  requestAnimationFrame(paint);
}

function paint() {
  framed = false;
  for (const uuid of changed) {
    const card = cards.querySelector(`[data-device="${CSS.escape(uuid)}"]`);
    const live = latest.get(uuid);
    if (card instanceof HTMLElement && live) fill(card, live);
  }
  changed.clear();
  if (order.value === "free") sort();
}

/** @param {HTMLElement} card @param {Live} live */
function fill(card, live) {
  const part = (/** @type {string} */ name) => find(`[data-part="${name}"]`, HTMLElement, card);
  dressChip(part("chip"), live.verdict);
  card.dataset.ends = live.booking?.end ?? "";
  part("who").textContent = holder(live);
  const booking = String(live.booking?.id ?? "");
  // Another booking's turn: what held the last one back is no longer of interest.
  if (card.dataset.booking !== booking) part("opening").hidden = true;
  card.dataset.booking = booking;
  part("says").textContent = PLAIN.has(live.verdict.code)
    ? ""
    : intruders(live) || live.verdict.text;
  part("mine").hidden = !mayBeMine(live);
  part("says").classList.toggle("bad", ACCUSING.has(live.verdict.code));
  card.classList.toggle("is-silent", live.verdict.code === "no_data");
  bar(part("use"), live.utilization_percent);
  part("use-text").textContent = unit(live.utilization_percent, "%");
  bar(part("memory"), share(live.memory_used_bytes, live.memory_total_bytes));
  part("memory").classList.toggle("w", live.verdict.code === "idle");
  part("memory-text").textContent = memoryText(live);
  part("owners").textContent = owners(live);
  part("temperature").textContent =
    live.temperature_c === null ? "" : unit(live.temperature_c, "°C");
  part("power").textContent = live.power_w === null ? "" : unit(live.power_w, "W");
  const canvas = /** @type {HTMLCanvasElement} */ (part("spark"));
  drawSpark(canvas, rings.get(live.uuid) ?? [], now() / 1_000);
}

/** @param {Live} live */
function holder({ booking }) {
  if (!booking) return t("nobody");
  const mine = booking.owner?.username === config.me.username;
  const who = mine ? t("you") : (booking.owner?.name ?? t("booked"));
  return t("until", { who, until: words.until(Date.parse(booking.end), now()) });
}

/** Who is on it without a booking, with the processes to look for. @param {Live} live */
function intruders({ verdict, processes }) {
  if (!ACCUSING.has(verdict.code)) return "";
  const told = (verdict.who ?? []).map((who) => {
    const pids = processes.filter(({ owner }) => owner === who).map(({ pid }) => pid);
    return pids.length ? t("on_it_unbooked", { who, pids: pids.join(", ") }) : "";
  });
  return told.every(Boolean) ? told.join("\n") : "";
}

/** Whether somebody is on it unbooked who may be the one who looks: by name, or where names are hidden. @param {Live} live */
function mayBeMine({ verdict, processes }) {
  if (verdict.code !== "unbooked_use") return false;
  return processes.some(({ owner }) => owner === null || owner === config.me.name);
}

/** @param {HTMLElement} element @param {number | null} percent */
function bar(element, percent) {
  element.style.width = `${percent ?? 0}%`;
}

/** @param {number | null} value @param {string} name */
function unit(value, name) {
  return value === null ? t("no_reading") : `${Math.round(value)} ${name}`;
}

/** @param {number | null} part @param {number | null} whole */
function share(part, whole) {
  return part === null || !whole ? null : (100 * part) / whole;
}

/** @param {number} bytes */
function gigabytes(bytes) {
  const amount = bytes / GB;
  return amount < 10 ? amount.toFixed(1).replace(/\.0$/, "") : String(Math.round(amount));
}

/** @param {Live} live */
function memoryText({ memory_used_bytes: used, memory_total_bytes: total }) {
  if (used === null || total === null) return t("no_reading");
  return t("memory_of", { used: gigabytes(used), total: gigabytes(total) });
}

/** Who holds how much of the memory. @param {Live} live */
function owners({ processes }) {
  /** @type {Map<string, number>} */
  const sums = new Map();
  for (const { owner, memory_bytes } of processes) {
    const name = owner ?? "?";
    sums.set(name, (sums.get(name) ?? 0) + (memory_bytes ?? 0));
  }
  if (!sums.size) return t("nobody_uses");
  return [...sums]
    .map(([name, bytes]) => t("use_of", { name, memory: gigabytes(bytes) }))
    .join(" · ");
}

const order = find("#sort", HTMLSelectElement);

function sort() {
  const key = (/** @type {HTMLElement} */ card) =>
    order.value === "free" ? Date.parse(card.dataset.ends ?? "") || 0 : Number(card.dataset.order);
  const found = /** @type {HTMLElement[]} */ ([...cards.children]);
  const wanted = found.toSorted(
    (a, b) => key(a) - key(b) || Number(a.dataset.order) - Number(b.dataset.order),
  );
  if (wanted.some((card, index) => card !== found[index])) cards.append(...wanted);
}
order.addEventListener("change", sort);

function repaintAll() {
  for (const uuid of latest.keys()) changed.add(uuid);
  paint();
}
document.addEventListener("visibilitychange", () => !document.hidden && repaintAll());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaintAll);
addEventListener("resize", repaintAll);

const stale = showStale("live");
new LiveSocket("/ws/live/", {
  onOpen: stale.fresh,
  onLost: stale.lost,
  onSignedOut: stale.signedOut,
  onMessage: ({ devices }) => take(devices ?? []),
});

/** Whether those who have booked the device are let in yet. @param {Row} row */
function showOpening({ devices, opening, start, end, state }) {
  const running = Date.parse(start) <= now() && now() < Date.parse(end) && state === "confirmed";
  if (!running) return;
  for (const uuid of devices) {
    const note = cards.querySelector(`[data-device="${CSS.escape(uuid)}"] [data-part="opening"]`);
    if (!(note instanceof HTMLElement)) continue;
    note.textContent = opening ? t("held_back", { reason: opening.reason }) : "";
    note.hidden = !opening;
  }
}

/** What was told before this page listened. The next event makes up for a fetch that fails. */
async function catchUp() {
  const present = { from: iso(now()), to: iso(now() + 1_000) };
  const found = await get("calendar", present).catch(() => null);
  for (const row of found?.bookings ?? []) showOpening(row);
}

const calendarStale = showStale("calendar");
new LiveSocket("/ws/calendar/", {
  onOpen: () => {
    calendarStale.fresh();
    takeHolds();
    catchUp();
  },
  onLost: calendarStale.lost,
  onSignedOut: calendarStale.signedOut,
  onMessage: ({ type, row }) => {
    if (type === "hosts") takeHolds(row);
    if (type === "booking") showOpening(row);
  },
});
showHolds();
setInterval(showHolds, 15_000);
