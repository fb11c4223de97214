// The keyboard's way to everything that a pointer can do on the timeline.
// On a row: arrows move a draft, with Shift they stretch it, Enter opens it, Escape drops it.
// On a booking: Enter opens it, Alt+arrows move it, Alt+Shift+arrows resize it, Delete gives it up.

import { snapUp } from "./axis.js";
import { closest, debounced } from "./dom.js";
import { same } from "./drag.js";
import { between, editable, pulled } from "./gesture.js";
import { now } from "./page.js";
import { HOUR } from "./zoned.js";

/** @import { Outcomes } from "./drag.js" */
/** @import { Booking } from "./store.js" */
/** @import { Draft, Timeline } from "./timeline.js" */

// A change is sent once the keys have rested this long, not at every step.
const REST_MS = 600;

/**
 * @param {Timeline} timeline
 * @param {number} grid ms
 * @param {Outcomes & { onDelete: (booking: Booking) => void }} outcomes
 */
export function attachKeys(timeline, grid, outcomes) {
  const nudges = nudger(timeline, grid, outcomes);
  timeline.root.addEventListener("keydown", (event) => {
    const box = closest(event.target, "[data-booking]");
    const lane = closest(event.target, "[data-device]");
    const booking = box ? timeline.store.get(Number(box.dataset.booking)) : undefined;
    const used = booking
      ? onBooking(event, booking, nudges, outcomes)
      : lane !== null && onLane(event, timeline, grid, lane, outcomes);
    if (used) event.preventDefault();
  });
}

/**
 * @param {KeyboardEvent} event
 * @param {Booking} booking
 * @param {ReturnType<typeof nudger>} nudges
 * @param {Outcomes & { onDelete: (booking: Booking) => void }} outcomes
 */
function onBooking(event, booking, nudges, outcomes) {
  const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (direction && event.altKey) return nudges.nudge(booking, direction, event.shiftKey);
  if (event.key === "Enter" || event.key === " ") {
    outcomes.onOpen(booking);
    return true;
  }
  if (event.key === "Delete") {
    outcomes.onDelete(booking);
    return true;
  }
  if (event.key === "Escape") nudges.cancel();
  return false;
}

/**
 * Collects steps on one booking and sends their sum.
 * @param {Timeline} timeline
 * @param {number} grid
 * @param {Outcomes} outcomes
 */
function nudger(timeline, grid, outcomes) {
  /** @type {{ booking: Booking, change: Draft } | null} */
  let held = null;
  const clear = () => {
    const done = held;
    held = null;
    if (done) timeline.propose(done.booking.id, null);
    return done;
  };
  const send = debounced(() => {
    const done = clear();
    if (done && !same(done.change, done.booking)) outcomes.onChange(done.booking, done.change);
  }, REST_MS);
  return {
    cancel: clear,
    /** @param {Booking} booking @param {number} direction @param {boolean} resize */
    nudge(booking, direction, resize) {
      const freedom = editable(booking, timeline.me, now());
      const saving = timeline.proposals.get(booking.id)?.how === "pending";
      if (saving || freedom === "none" || (freedom === "end" && !resize)) return true;
      const from = held?.booking.id === booking.id ? held.change : booking;
      const grip = resize ? "end" : "move";
      const span = pulled(from, { grip, delta: direction * grid, grid, now: now() });
      const change = { ...span, devices: booking.devices };
      held = { booking, change };
      const blocked = timeline.store.blocker({ ...change, except: booking.id }) !== undefined;
      timeline.propose(booking.id, { ...change, how: "dragging", blocked });
      send();
      return true;
    },
  };
}

/**
 * @param {KeyboardEvent} event
 * @param {Timeline} timeline
 * @param {number} grid
 * @param {HTMLElement} lane
 * @param {Outcomes} outcomes
 */
function onLane(event, timeline, grid, lane, outcomes) {
  const device = lane.dataset.device ?? "";
  if (event.key === "Enter" && timeline.draft) {
    outcomes.onDraft(timeline.draft);
    return true;
  }
  if (event.key === "Escape") {
    timeline.setDraft(null);
    return true;
  }
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const step = steps[/** @type {keyof typeof steps} */ (event.key)];
  if (!step || event.altKey || event.ctrlKey || event.metaKey) return false;
  const [across, down] = step;
  if (across) timeline.setDraft(slid(timeline, grid, device, across, event.shiftKey));
  else stepRow(timeline, device, down, event.shiftKey);
  return true;
}

/**
 * @param {Timeline} timeline
 * @param {number} grid
 * @param {string} device
 * @param {number} across
 * @param {boolean} stretch
 * @returns {Draft}
 */
function slid(timeline, grid, device, across, stretch) {
  const held = timeline.draft;
  if (!held?.devices.includes(device)) {
    const from = snapUp(Math.max(now(), timeline.axis?.start ?? 0), grid);
    return { devices: [device], from, to: from + HOUR };
  }
  const grip = stretch ? "end" : "move";
  const span = pulled(held, { grip, delta: across * grid, grid, now: now() });
  return { ...span, devices: held.devices };
}

/** @param {Timeline} timeline @param {string} device @param {number} down @param {boolean} stretch */
function stepRow(timeline, device, down, stretch) {
  const order = timeline.order();
  const next = order[order.indexOf(device) + down];
  if (next === undefined) return;
  timeline.lanes.get(next)?.focus();
  if (!timeline.draft) return;
  const { devices } = timeline.draft;
  const kept = stretch ? between(order, devices[down > 0 ? 0 : devices.length - 1], next) : [next];
  timeline.setDraft({ ...timeline.draft, devices: kept });
}
