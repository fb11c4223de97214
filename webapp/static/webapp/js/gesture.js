// What a gesture means in time. Pure: instants in, instants out.

import { snap, snapUp } from "./axis.js";

/** @import { Booking } from "./store.js" */

/** @typedef {{ from: number, to: number }} Span */
/** @typedef {"move" | "start" | "end"} Grip */
/** @typedef {"all" | "end" | "none"} Editable */

/**
 * The span drawn from one instant to another, to the nearest steps of the grid. Left of now it starts now; wholly in the past, nothing.
 * @param {{ anchor: number, at: number, grid: number, now: number }} drawn
 * @returns {Span | null}
 */
export function drafted({ anchor, at, grid, now }) {
  const from = snap(Math.min(anchor, at), grid);
  const to = Math.max(snap(Math.max(anchor, at), grid), from + grid);
  return to <= now ? null : { from: Math.max(from, now), to };
}

/**
 * A booking moved or resized by `delta` ms, onto the grid, never shorter than one step of it.
 * @param {Span} span
 * @param {{ grip: Grip, delta: number, grid: number, now: number }} pull
 * @returns {Span}
 */
export function pulled({ from, to }, { grip, delta, grid, now }) {
  if (grip === "end") {
    const earliest = Math.max(from + grid, snapUp(now, grid));
    return { from, to: Math.max(snap(to + delta, grid), earliest) };
  }
  if (grip === "start") {
    const latest = to - grid;
    return { from: Math.min(Math.max(snap(from + delta, grid), snapUp(now, grid)), latest), to };
  }
  const start = Math.max(snap(from + delta, grid), snapUp(now, grid));
  return { from: start, to: start + (snapUp(to, grid) - snap(from, grid)) };
}

/**
 * What this person may change of a booking now, as far as a calendar row tells; the server decides.
 * @param {Booking} booking
 * @param {{ username: string, operator: boolean }} me
 * @param {number} now
 * @returns {Editable}
 */
export function editable(booking, me, now) {
  const mine = booking.owner?.username === me.username;
  if (!(mine || me.operator) || booking.state !== "confirmed" || booking.to <= now) return "none";
  return booking.from <= now ? "end" : "all";
}

/** Which devices a rectangle over several rows means. @param {string[]} order @param {string} a @param {string} b */
export function between(order, a, b) {
  const [first, last] = [order.indexOf(a), order.indexOf(b)].sort((x, y) => x - y);
  return order.slice(first, last + 1);
}
