// All bookings that this page knows, by id. Whatever the order in which fetches and events arrive,
// the newest revision stays; of equal revisions, the one that tells more.

/**
 * @typedef {object} Person
 * @property {string} username
 * @property {string} name
 */

/**
 * A booking as the calendar and its events carry it.
 * @typedef {object} Row
 * @property {number} id
 * @property {number} revision
 * @property {string} state pending, confirmed, cancelled, rejected
 * @property {string} kind normal, service, maintenance
 * @property {string} start RFC 3339
 * @property {string} end RFC 3339
 * @property {string[]} devices
 * @property {Person | null} owner null where names are masked
 * @property {string[]} people
 * @property {string | null} team
 * @property {boolean} pinned
 * @property {string} purpose
 * @property {{ state: string, reason: string, since: string } | null} [opening] while a device of it is held back
 */

/** @typedef {Row & { from: number, to: number }} Booking with its instants in ms */

const GONE = new Set(["cancelled", "rejected"]);

export class Store {
  constructor() {
    /** @type {Map<number, { booking: Booking, touched: number }>} */
    this.known = new Map();
    this.clock = 0;
  }

  /**
   * Takes one row in. Cancelled bookings stay known, so that an older event cannot bring them back.
   * @param {Row} row
   * @returns {boolean} whether anything changed
   */
  upsert(row) {
    const held = this.known.get(row.id);
    if (held && row.revision < held.booking.revision) return false;
    const booking = { ...row, from: Date.parse(row.start), to: Date.parse(row.end) };
    this.known.set(row.id, { booking, touched: ++this.clock });
    return true;
  }

  /** The moment before a fetch; pass it to `absorb`. */
  mark() {
    return this.clock;
  }

  /**
   * Takes in the answer of a fetch of [from, to). What the server no longer has there is forgotten,
   * unless it arrived by an event after the fetch began.
   * @param {Row[]} rows
   * @param {{ from: number, to: number, mark: number }} fetched
   */
  absorb(rows, { from, to, mark }) {
    const present = new Set(rows.map((row) => row.id));
    for (const [id, { booking, touched }] of this.known) {
      const within = booking.from < to && from < booking.to;
      if (within && touched <= mark && !present.has(id)) this.known.delete(id);
    }
    for (const row of rows) this.upsert(row);
  }

  /** @param {number} id @returns {Booking | undefined} */
  get(id) {
    return this.known.get(id)?.booking;
  }

  /** Every booking that is to be drawn, by start. @returns {Booking[]} */
  bookings() {
    return [...this.known.values()]
      .map((held) => held.booking)
      .filter((booking) => !GONE.has(booking.state))
      .sort((a, b) => a.from - b.from || a.id - b.id);
  }

  /**
   * What stands in the way on these devices; a hint while dragging, the server decides.
   * @param {{ devices: string[], from: number, to: number, except?: number }} wish
   * @returns {Booking | undefined} the first blocker
   */
  blocker({ devices, from, to, except }) {
    return this.bookings().find(
      (booking) =>
        booking.id !== except &&
        booking.state === "confirmed" &&
        booking.from < to &&
        from < booking.to &&
        booking.devices.some((device) => devices.includes(device)),
    );
  }
}

/** @param {Row} row */
export function isGone(row) {
  return GONE.has(row.state);
}
