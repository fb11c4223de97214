// The timeline page: which days and rows are shown, what is fetched, and who tells whom.

import { ApiProblem, get, iso } from "./api.js";
import { Axis, snapUp } from "./axis.js";
import { Changes } from "./changes.js";
import { BookDialog, errorText } from "./dialog.js";
import { find } from "./dom.js";
import { attachDrag } from "./drag.js";
import { showHolds, takeHolds } from "./holds.js";
import { attachKeys } from "./keys.js";
import { config, now, t, words } from "./page.js";
import { LiveSocket } from "./socket.js";
import { showStale } from "./stale.js";
import { Store } from "./store.js";
import { Timeline } from "./timeline.js";
import { toast } from "./toast.js";
import { View } from "./view.js";
import { dayOf, HOUR, MINUTE, offsetOf, zoneName } from "./zoned.js";

/** @import { Slot } from "./api.js" */
/** @import { Booking } from "./store.js" */
/** @import { Verdict } from "./timeline-rows.js" */
/** @import { Draft } from "./timeline.js" */

const DEFAULT_MS = 2 * HOUR;
const snapStep = Math.max(config.grid_s * 1_000, 15 * MINUTE);

const store = new Store();
const timeline = new Timeline(find("#timeline", HTMLElement), store, config.me);
const view = new View(reload, draw);
const changes = new Changes(timeline, nameOf);
const dialog = new BookDialog(find("#book", HTMLDialogElement), {
  onDraft: (draft, pending) => timeline.setDraft(draft, pending),
  onBooked: (row) => {
    store.upsert(row);
    draw();
    const span = words.span(Date.parse(row.start), Date.parse(row.end));
    toast(t("booked_toast", { span }));
    timeline.focus(row.id);
  },
});

/** @param {string} uuid */
function nameOf(uuid) {
  const device = view.device(uuid);
  return device ? t("device_on", { device: device.name, host: device.host }) : uuid;
}

function axisOfView() {
  return new Axis({ day: view.day, days: view.days, zone: words.zone, from: view.from });
}

/** Fetch what the view shows; the newest answer wins. */
async function reload() {
  const axis = axisOfView();
  const mark = store.mark();
  timeline.root.setAttribute("aria-busy", "true");
  try {
    const found = await get("calendar", { from: iso(axis.start), to: iso(axis.end) });
    store.absorb(found.bookings, { from: axis.start, to: axis.end, mark });
    view.setDevices(found.devices);
    view.noteSilence(verdicts);
    if (axis.start === axisOfView().start && axis.end === axisOfView().end) draw();
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error;
    if (error.status === 401) calendarStale.signedOut();
    else toast(errorText(error), { bad: true, label: t("try_again"), act: reload });
  } finally {
    timeline.root.setAttribute("aria-busy", "false");
  }
}

function draw() {
  const axis = axisOfView();
  const hosts = view.hosts(store, axis);
  find("#zone", HTMLElement).textContent = zoneText(axis.start);
  timeline.show(axis, hosts);
  for (const [device, verdict] of verdicts) timeline.setVerdict(device, verdict);
  const empty = find("#timeline-empty", HTMLElement);
  const nothing = !store.bookings().some((one) => axis.shows(one.from, one.to));
  empty.hidden = hosts.length > 0 && !nothing;
  empty.textContent = emptyText(hosts.length);
}

/** @param {number} hosts */
function emptyText(hosts) {
  if (hosts > 0) return axisOfView().end > now() ? t("nothing_booked") : t("nothing_was_booked");
  return view.hasDevices() ? t("filtered_empty") : t("no_devices");
}

/** @param {number} at */
function zoneText(at) {
  const shown = t("times_in", { zone: zoneName(words.zone, at) });
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (offsetOf(at, own) === offsetOf(at, words.zone)) return shown;
  return `${shown} · ${t("your_device", { zone: own.replaceAll("_", " ") })}`;
}

const outcomes = {
  onDraft: (/** @type {Draft} */ draft) => dialog.open(draft, view.all),
  onChange: (/** @type {Booking} */ booking, /** @type {Draft} */ change) =>
    changes.move(booking, change),
  onOpen: (/** @type {Booking} */ booking) => {
    location.href = `/bookings/${booking.id}/`;
  },
  onDelete: (/** @type {Booking} */ booking) => changes.giveUp(booking),
};
attachDrag(timeline, snapStep, outcomes);
attachKeys(timeline, snapStep, outcomes);

find("#book-open", HTMLElement).addEventListener("click", () => {
  const today = dayOf(now(), words.zone) === view.day;
  const morning = axisOfView().start + 9 * HOUR;
  const from = today || morning < now() ? now() : morning;
  dialog.open({ devices: [], from, to: snapUp(from + DEFAULT_MS, snapStep) }, view.all);
});

find("#next-free", HTMLButtonElement).addEventListener("click", async (event) => {
  const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
  button.setAttribute("aria-busy", "true");
  try {
    const found = await get("slots", {
      count: 1,
      duration_s: DEFAULT_MS / 1_000,
      limit: 1,
      ...view.filter(),
    });
    const [slot] = found.results ?? found;
    if (!slot) toast(t("no_free_slot"), { bad: true });
    else openSlot(slot);
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error;
    toast(errorText(error), { bad: true });
  } finally {
    button.setAttribute("aria-busy", "false");
  }
});

/** @param {Slot} slot */
function openSlot(slot) {
  const from = Date.parse(slot.start);
  if (!axisOfView().contains(from)) view.go(dayOf(from, words.zone));
  dialog.open({ devices: slot.devices, from, to: Date.parse(slot.end) }, view.all);
}

/** @type {Map<string, Verdict>} the newest of each device */
const verdicts = new Map();

const calendarStale = showStale("calendar");
new LiveSocket("/ws/calendar/", {
  onOpen: () => {
    calendarStale.fresh();
    takeHolds();
    reload();
  },
  onLost: calendarStale.lost,
  onSignedOut: calendarStale.signedOut,
  onMessage: ({ type, row }) => {
    if (type === "booking" && store.upsert(row)) timeline.drawOne(row.id);
    if (type === "notice") toast(row.text);
    if (type === "hosts") takeHolds(row);
  },
});

const liveStale = showStale("live");
new LiveSocket("/ws/live/", {
  onOpen: liveStale.fresh,
  onLost: liveStale.lost,
  onSignedOut: liveStale.signedOut,
  onMessage: ({ devices }) => {
    for (const { uuid, verdict } of devices ?? []) {
      verdicts.set(uuid, verdict);
      timeline.setVerdict(uuid, verdict);
    }
    view.noteSilence(verdicts);
  },
});

setInterval(() => {
  timeline.tick();
  showHolds();
  // What shows the present moves on with it, but never under somebody's hand.
  const passed = view.follows && timeline.axis?.start !== axisOfView().start;
  if (passed && !timeline.isBusy) view.goToNow();
}, 15_000);
// The socket fetches once more when it listens: what happened in between is in that answer.
reload();
