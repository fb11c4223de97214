// Pointers on the timeline: draw a draft over one or several rows, move and resize own bookings.
// A finger scrolls unless it rests first; then the gesture is ours until it ends.

import { snap } from "./axis.js";
import { closest } from "./dom.js";
import { between, drafted, editable, pulled } from "./gesture.js";
import { now } from "./page.js";

/** @import { Grip } from "./gesture.js" */
/** @import { Booking } from "./store.js" */
/** @import { Draft, Timeline } from "./timeline.js" */

/**
 * @typedef {object} Outcomes
 * @property {(draft: Draft) => void} onDraft
 * @property {(booking: Booking, change: Draft) => void} onChange
 * @property {(booking: Booking) => void} onOpen
 */

/**
 * One gesture under way.
 * @typedef {object} Gesture
 * @property {(event: PointerEvent) => void} move
 * @property {() => void} finish
 * @property {() => void} cancel
 */

const LONG_PRESS_MS = 350;
const EDGE_PX = 7;
const STILL_PX = 5;
const CLICK_MS = 60 * 60_000;

/**
 * @param {Timeline} timeline
 * @param {number} grid ms
 * @param {Outcomes} outcomes
 */
export function attachDrag(timeline, grid, outcomes) {
  const { root } = timeline;
  /** @type {Gesture | null} */
  let gesture = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let press;
  let pressedAt = { x: 0, y: 0 };

  /** @param {PointerEvent} event */
  const begin = (event) => {
    gesture = start(timeline, grid, outcomes, event);
    if (gesture) root.setPointerCapture(event.pointerId);
  };
  const stop = () => {
    clearTimeout(press);
    press = undefined;
    const done = gesture;
    gesture = null;
    return done;
  };

  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || gesture) return;
    pressedAt = { x: event.clientX, y: event.clientY };
    if (event.pointerType !== "touch") begin(event);
    else press = setTimeout(() => begin(event), LONG_PRESS_MS);
  });
  root.addEventListener("pointermove", (event) => {
    const far = Math.hypot(event.clientX - pressedAt.x, event.clientY - pressedAt.y) > STILL_PX;
    if (!gesture && far) clearTimeout(press);
    gesture?.move(event);
  });
  root.addEventListener("pointerup", () => stop()?.finish());
  root.addEventListener("pointercancel", () => stop()?.cancel());
  // Only this keeps a touch from scrolling once the gesture is ours.
  root.addEventListener("touchmove", (event) => gesture && event.preventDefault(), {
    passive: false,
  });
  root.addEventListener("contextmenu", (event) => gesture && event.preventDefault());
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") stop()?.cancel();
  });
}

/**
 * @param {Timeline} timeline
 * @param {number} grid
 * @param {Outcomes} outcomes
 * @param {PointerEvent} event
 * @returns {Gesture | null}
 */
function start(timeline, grid, outcomes, event) {
  const box = closest(event.target, "[data-booking]");
  const lane = closest(event.target, "[data-device]");
  if (!box) return lane ? drawing(timeline, grid, outcomes, event, lane) : null;
  const booking = timeline.store.get(Number(box.dataset.booking));
  if (!booking || timeline.proposals.has(booking.id)) return null;
  return pulling(timeline, grid, outcomes, event, {
    booking,
    box,
    device: lane?.dataset.device ?? "",
  });
}

/**
 * @param {Timeline} timeline
 * @param {number} grid
 * @param {Outcomes} outcomes
 * @param {PointerEvent} down
 * @param {HTMLElement} lane
 * @returns {Gesture}
 */
function drawing(timeline, grid, outcomes, down, lane) {
  const anchor = timeline.instantAt(down.clientX);
  const first = lane.dataset.device ?? "";
  let last = first;
  let at = anchor;
  const draft = () => {
    const span = drafted({ anchor, at, grid, now: now() });
    return span && { ...span, devices: between(timeline.order(), first, last) };
  };
  // A finger that has rested long enough is told so.
  if (down.pointerType === "touch") timeline.setDraft(draft());
  return {
    move(event) {
      at = timeline.instantAt(event.clientX);
      last = timeline.deviceAt(event.clientX, event.clientY) ?? last;
      timeline.setDraft(draft());
    },
    finish() {
      // A click, without a drag, means an hour from there.
      if (at === anchor && first === last) at = anchor + CLICK_MS;
      const drawn = draft();
      timeline.setDraft(drawn);
      if (drawn) outcomes.onDraft(drawn);
    },
    cancel: () => timeline.setDraft(null),
  };
}

/**
 * @param {Timeline} timeline
 * @param {number} grid
 * @param {Outcomes} outcomes
 * @param {PointerEvent} down
 * @param {{ booking: Booking, box: HTMLElement, device: string }} held
 * @returns {Gesture}
 */
function pulling(timeline, grid, outcomes, down, { booking, box, device }) {
  const freedom = editable(booking, timeline.me, now());
  const grip = gripOf(box, down.clientX);
  const allowed = freedom === "all" || (freedom === "end" && grip === "end");
  const anchor = timeline.instantAt(down.clientX);
  /** @type {Draft | null} */
  let change = null;
  let moved = false;
  return {
    move(event) {
      moved ||=
        Math.abs(event.clientX - down.clientX) + Math.abs(event.clientY - down.clientY) > STILL_PX;
      if (!moved || !allowed) return;
      const delta = snap(timeline.instantAt(event.clientX) - anchor, grid);
      const over = timeline.deviceAt(event.clientX, event.clientY);
      change = {
        ...pulled(booking, { grip, delta, grid, now: now() }),
        devices: grip === "move" ? swapped(booking.devices, device, over) : booking.devices,
      };
      const blocked = timeline.store.blocker({ ...change, except: booking.id }) !== undefined;
      timeline.propose(booking.id, { ...change, how: "dragging", blocked });
    },
    finish() {
      timeline.propose(booking.id, null);
      if (!moved) outcomes.onOpen(booking);
      else if (change && !same(change, booking)) outcomes.onChange(booking, change);
    },
    cancel: () => timeline.propose(booking.id, null),
  };
}

/** @param {HTMLElement} box @param {number} clientX @returns {Grip} */
function gripOf(box, clientX) {
  const { left, right, width } = box.getBoundingClientRect();
  // On a short booking the edges would leave nothing to move it by.
  const edge = Math.min(EDGE_PX, width / 4);
  if (clientX - left < edge) return "start";
  return right - clientX < edge ? "end" : "move";
}

/** The devices after one was dragged onto another row. @param {string[]} devices @param {string} from @param {string | undefined} to */
function swapped(devices, from, to) {
  if (to === undefined || devices.includes(to)) return devices;
  return devices.map((device) => (device === from ? to : device));
}

/** @param {Draft} a @param {Draft} b */
export function same(a, b) {
  return a.from === b.from && a.to === b.to && a.devices.join() === b.devices.join();
}
