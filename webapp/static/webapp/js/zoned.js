// Instants (ms since the epoch) and the wall clock of an IANA zone. All zone rules come from Temporal;
// nothing here, or anywhere else in the browser, adds hours to a wall time.

import "./temporal.js";

export const MINUTE = 60_000;
export const HOUR = 3_600_000;

/** @param {number} at @param {string} zone @returns {Temporal.ZonedDateTime} */
export function zoned(at, zone) {
  return Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone);
}

/** The calendar day, as YYYY-MM-DD, on which an instant falls. @param {number} at @param {string} zone */
export function dayOf(at, zone) {
  return zoned(at, zone).toPlainDate().toString();
}

/** The first instant of a day; not always midnight. @param {string} day @param {string} zone */
export function startOfDay(day, zone) {
  return Temporal.PlainDate.from(day).toZonedDateTime(zone).startOfDay().epochMilliseconds;
}

/** Whether a text is a day of the calendar, as YYYY-MM-DD. @param {string} text */
export function isDay(text) {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false;
  const date = new Date(`${text}T00:00Z`);
  return !Number.isNaN(date.valueOf()) && date.toISOString().startsWith(text);
}

/** The full hour of the wall clock in which an instant falls. @param {number} at @param {string} zone */
export function startOfHour(at, zone) {
  return zoned(at, zone).round({ smallestUnit: "hour", roundingMode: "floor" }).epochMilliseconds;
}

/** @param {string} day @param {number} count days later, or earlier when negative */
export function addDays(day, count) {
  return Temporal.PlainDate.from(day).add({ days: count }).toString();
}

/**
 * The instants at which a wall clock shows a time: none in the hour that a zone skips,
 * two (earlier first) in the hour that it repeats, else one.
 * @param {string} wall such as 2027-03-28T02:30
 * @param {string} zone
 * @returns {number[]}
 */
export function instantsOf(wall, zone) {
  const plain = Temporal.PlainDateTime.from(wall);
  const found = /** @type {const} */ (["earlier", "later"])
    .map((disambiguation) => plain.toZonedDateTime(zone, { disambiguation }))
    .filter((candidate) => candidate.toPlainDateTime().equals(plain))
    .map((candidate) => candidate.epochMilliseconds);
  return [...new Set(found)];
}

/** What a wall clock shows, for a datetime-local field. @param {number} at @param {string} zone */
export function wallOf(at, zone) {
  return zoned(at, zone).toPlainDateTime().toString({ smallestUnit: "minute" });
}

/** UTC, UTC+8, UTC+5:30. @param {number} at @param {string} zone */
export function offsetOf(at, zone) {
  const minutes = zoned(at, zone).offsetNanoseconds / 60e9;
  if (minutes === 0) return "UTC";
  const whole = Math.trunc(Math.abs(minutes) / 60);
  const rest = Math.abs(minutes) % 60;
  return `UTC${minutes < 0 ? "−" : "+"}${whole}${rest ? `:${String(rest).padStart(2, "0")}` : ""}`;
}

/** Asia/Shanghai (UTC+8), UTC. @param {string} zone @param {number} at */
export function zoneName(zone, at) {
  const [name, offset] = [zone.replaceAll("_", " "), offsetOf(at, zone)];
  return name === offset ? name : `${name} (${offset})`;
}

/**
 * The instants around one that are further than three hours from any clock change.
 * @param {number} at
 * @param {string} zone
 */
function calmAround(at, zone) {
  const here = zoned(at, zone);
  const before = here.getTimeZoneTransition("previous")?.epochMilliseconds ?? -Infinity;
  const after = here.getTimeZoneTransition("next")?.epochMilliseconds ?? Infinity;
  return { from: before + 3 * HOUR, to: after - 3 * HOUR };
}

/** Times in words, for one reader: a locale and a zone. */
export class Words {
  /** @param {string} locale @param {string} zone */
  constructor(locale, zone) {
    this.zone = zone;
    this.locale = locale;
    /** @param {Intl.DateTimeFormatOptions} options */
    const format = (options) => new Intl.DateTimeFormat(locale, { timeZone: zone, ...options });
    this.clock = format({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    this.weekday = format({ weekday: "short", day: "numeric", month: "short" });
    // Between two clock changes no time comes twice; most questions end here.
    this.calm = { from: 0, to: 0 };
  }

  /** Whether the clock shows the time of this instant twice. @param {number} at */
  isTwice(at) {
    if (this.calm.from <= at && at < this.calm.to) return false;
    this.calm = calmAround(at, this.zone);
    return instantsOf(wallOf(at, this.zone), this.zone).length > 1;
  }

  /** 14:00, or "02:30 (UTC+2)" where the clock shows that time twice. @param {number} at */
  time(at) {
    const text = this.clock.format(at);
    return this.isTwice(at) ? `${text} (${offsetOf(at, this.zone)})` : text;
  }

  /** Tue, 1 Dec. @param {number} at */
  day(at) {
    return this.weekday.format(at);
  }

  /** Tue, 1 Dec 14:00. @param {number} at */
  dayTime(at) {
    return `${this.day(at)} ${this.time(at)}`;
  }

  /** 14:00 when that is today, else with its day. @param {number} at @param {number} now */
  until(at, now) {
    return this.day(at) === this.day(now) ? this.time(at) : this.dayTime(at);
  }

  /** Tue, 1 Dec 14:00 – 18:00; the second day only when it differs. @param {number} start @param {number} end */
  span(start, end) {
    const same = this.day(start) === this.day(end);
    return `${this.dayTime(start)} – ${same ? this.time(end) : this.dayTime(end)}`;
  }

  /** 09:00 – 18:00. @param {number} start @param {number} end */
  clockSpan(start, end) {
    return `${this.clock.format(start)} – ${this.clock.format(end)}`;
  }
}

/** 45 min, 4 h, 4 h 30 min, 2 d 3 h: elapsed time, whatever the clock did. @param {number} ms */
export function durationText(ms) {
  const minutes = Math.round(ms / MINUTE);
  const days = Math.trunc(minutes / 1440);
  const hours = Math.trunc((minutes % 1440) / 60);
  const parts = [
    days ? `${days} d` : "",
    hours ? `${hours} h` : "",
    minutes % 60 ? `${minutes % 60} min` : "",
  ];
  return parts.filter(Boolean).join(" ") || "0 min";
}
