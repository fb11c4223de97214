// The heads of the timeline's rows: hosts, devices, and the verdict on each.

import { make } from "./dom.js";
import { holdText } from "./holds.js";
import { now, t, words } from "./page.js";
import { durationText, MINUTE } from "./zoned.js";

/**
 * @typedef {object} DeviceRow
 * @property {string} uuid
 * @property {string} host
 * @property {number} index
 * @property {string} name
 * @property {string} vendor
 * @property {string} model
 * @property {number | null} memory_bytes
 * @property {string} state
 * @property {boolean} bookable
 */

/**
 * @typedef {object} HostRow
 * @property {string} name
 * @property {string | null} silent_since
 * @property {DeviceRow[]} devices
 */

/**
 * @typedef {object} Verdict
 * @property {string} code free, in_use, idle, unbooked_use, foreign_use, no_data, lost, needs_attention
 * @property {string} text
 * @property {string | null} [since]
 * @property {string[]} [who]
 */

/** @type {Record<string, string>} */
const CHIPS = {
  free: "free",
  in_use: "busy",
  idle: "idle",
  unbooked_use: "bad",
  foreign_use: "bad",
  lost: "bad",
  needs_attention: "bad",
};

/** @param {HostRow} host */
export function hostHead(host) {
  const head = make(
    "div",
    { class: "tl-host", "data-host": host.name },
    make("b", { text: host.name }),
    make("span", { text: summary(host.devices) }),
    ...simulatedTag(host),
  );
  const hold = make("span", { class: "silent", "data-hold": host.name, text: holdText(host.name) });
  hold.hidden = !hold.textContent;
  head.append(hold);
  if (host.silent_since) {
    const since = words.dayTime(Date.parse(host.silent_since));
    head.append(make("span", { class: "silent", text: t("host_silent", { since }) }));
    head.classList.add("is-silent");
  }
  return head;
}

/** Nobody may take a simulated device for a real one. @param {HostRow} host */
export function simulatedTag({ devices }) {
  const simulated = devices.some((device) => device.vendor === "simulated");
  return simulated ? [make("span", { class: "tag", text: t("simulated") })] : [];
}

/** 4 × A100 80GB. @param {DeviceRow[]} devices */
function summary(devices) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { model } of devices) counts.set(model, (counts.get(model) ?? 0) + 1);
  return [...counts].map(([model, count]) => `${count} × ${model}`).join(", ");
}

/** @param {DeviceRow} device */
export function nameCell(device) {
  return make(
    "div",
    { class: "tl-name" },
    deviceName(device),
    make("span", { class: "chip unknown", "data-chip": device.uuid, text: t("chip_no_data") }),
  );
}

/** Where room is short the model gives way, never the number. @param {DeviceRow} device */
function deviceName({ name, model, index }) {
  const parts = [make("span", { text: model }), make("b", { text: `· ${index}` })];
  return make("span", { class: "device-name", title: name }, ...parts);
}

/** @param {HTMLElement} root @param {string} device @param {Verdict} verdict */
export function showVerdict(root, device, verdict) {
  const chip = root.querySelector(`[data-chip="${CSS.escape(device)}"]`);
  if (chip instanceof HTMLElement) dressChip(chip, verdict);
}

/** @param {HTMLElement} chip @param {Verdict} verdict */
export function dressChip(chip, verdict) {
  chip.className = `chip ${CHIPS[verdict.code] ?? "unknown"}`;
  chip.textContent = chipText(verdict);
  chip.title = verdict.text;
}

/** @param {Verdict} verdict */
function chipText({ code, since }) {
  const idle = code === "idle" && since ? now() - Date.parse(since) : 0;
  return idle < MINUTE ? t(`chip_${code}`) : t("idle_for", { duration: durationText(idle) });
}
