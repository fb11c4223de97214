// The time axis: linear in absolute time. Where something stands is arithmetic on milliseconds;
// only labels and day lines ask the zone, so a 23-hour day has 23 columns and a 25-hour day 25.

import { addDays, dayOf, HOUR, MINUTE, offsetOf, startOfDay, zoned } from "./zoned.js";

/**
 * @typedef {object} Tick
 * @property {number} at
 * @property {number} hour as the wall clock shows it
 * @property {string} label
 * @property {boolean} repeated the wall clock shows this hour twice that day
 */

/** @typedef {{ day: string, start: number, end: number }} Day */

// Every zone in use changes its clock by a multiple of this.
const STEP = 15 * MINUTE;

export class Axis {
  /**
   * @param {object} range
   * @param {string} range.day the first day, YYYY-MM-DD
   * @param {number} range.days how many
   * @param {string} range.zone IANA name
   * @param {number} [range.from] begin here instead of with the day, and show as many times 24 hours
   */
  constructor({ day, days, zone, from }) {
    this.zone = zone;
    this.start = from ?? startOfDay(day, zone);
    this.end = from === undefined ? startOfDay(addDays(day, days), zone) : from + days * 24 * HOUR;
    /** @type {Day[]} the days that are shown, whole or in part */
    this.days = [];
    for (
      let one = dayOf(this.start, zone);
      startOfDay(one, zone) < this.end;
      one = addDays(one, 1)
    ) {
      const [begin, end] = [startOfDay(one, zone), startOfDay(addDays(one, 1), zone)];
      this.days.push({
        day: one,
        start: Math.max(begin, this.start),
        end: Math.min(end, this.end),
      });
    }
  }

  get hours() {
    return (this.end - this.start) / HOUR;
  }

  /** Where an instant stands: 0 at the start of the axis, 1 at its end. @param {number} at */
  fraction(at) {
    return (at - this.start) / (this.end - this.start);
  }

  /** The instant at a place. @param {number} fraction */
  instant(fraction) {
    return this.start + fraction * (this.end - this.start);
  }

  /** @param {number} at */
  contains(at) {
    return this.start <= at && at < this.end;
  }

  /** @param {number} start @param {number} end */
  shows(start, end) {
    return start < this.end && this.start < end;
  }

  /**
   * One tick per full hour of the wall clock, in order.
   * @returns {Tick[]}
   */
  ticks() {
    return this.days
      .flatMap(({ day }) => hoursOf(day, this.zone))
      .filter(({ at }) => this.contains(at));
  }
}

/** All hours of a day: what repeats is told by the whole of it. @param {string} day @param {string} zone @returns {Tick[]} */
function hoursOf(day, zone) {
  /** @type {Tick[]} */
  const ticks = [];
  const end = startOfDay(addDays(day, 1), zone);
  for (let at = startOfDay(day, zone); at < end; at += STEP) {
    const { hour, minute } = zoned(at, zone);
    if (minute === 0)
      ticks.push({ at, hour, label: String(hour).padStart(2, "0"), repeated: false });
  }
  for (const tick of ticks) {
    tick.repeated = ticks.some((other) => other !== tick && other.hour === tick.hour);
    if (tick.repeated) tick.label += ` ${offsetOf(tick.at, zone).replace("UTC", "") || "+0"}`;
  }
  return ticks;
}

/** How many hours apart labels stand, so that they do not touch. @param {number} pixelsPerHour */
export function labelStep(pixelsPerHour) {
  return [1, 2, 3, 4, 6, 12].find((hours) => hours * pixelsPerHour >= 30) ?? 24;
}

/** To the nearest instant on the grid. @param {number} at @param {number} grid ms */
export function snap(at, grid) {
  return Math.round(at / grid) * grid;
}

/** @param {number} at @param {number} grid ms */
export function snapUp(at, grid) {
  return Math.ceil(at / grid) * grid;
}
