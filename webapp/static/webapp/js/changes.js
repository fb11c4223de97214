// Moving, resizing and giving up one's own bookings. The server decides: until it has answered the
// booking is hatched and locked; on refusal it goes back and what stands in the way is outlined.

import { ApiProblem, call, iso } from "./api.js";
import { errorText, rowOf } from "./dialog.js";
import { now, t, words } from "./page.js";
import { toast } from "./toast.js";
import { sentences, slotText } from "./verdict.js";

/** @import { Slot } from "./api.js" */
/** @import { Booking } from "./store.js" */
/** @import { Draft, Timeline } from "./timeline.js" */

export class Changes {
  /**
   * @param {Timeline} timeline
   * @param {(uuid: string) => string} nameOf
   */
  constructor(timeline, nameOf) {
    this.timeline = timeline;
    this.store = timeline.store;
    this.nameOf = nameOf;
  }

  /** Move or resize, with a way back. @param {Booking} booking @param {Draft} change */
  async move(booking, change) {
    const before = { devices: booking.devices, from: booking.from, to: booking.to };
    if (!(await this.save(booking, change))) return;
    toast(t("moved", { span: words.span(change.from, change.to) }), {
      label: t("undo"),
      act: () => this.undo(booking.id, before),
    });
  }

  /** @param {number} id @param {Draft} before */
  async undo(id, before) {
    const booking = this.store.get(id);
    if (booking && (await this.save(booking, before))) toast(t("undone"));
  }

  /** @param {Booking} booking @param {Draft} change @returns {Promise<boolean>} whether it was accepted */
  async save(booking, change) {
    const device = this.focusedDevice(booking.id);
    this.timeline.outline(undefined);
    this.timeline.propose(booking.id, { ...change, how: "pending", blocked: false });
    try {
      const body = difference(booking, change);
      const { revision } = booking;
      this.store.upsert(rowOf(await call("PATCH", `bookings/${booking.id}/`, { body, revision })));
      return true;
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.refused(booking, change, error);
      return false;
    } finally {
      this.timeline.propose(booking.id, null);
      if (device !== undefined) this.timeline.focus(booking.id, device);
    }
  }

  /** @param {Booking} booking @param {Draft} change @param {ApiProblem} error */
  refused(booking, change, error) {
    if (error.code === "stale" && error.problem.booking) {
      this.store.upsert(rowOf(error.problem.booking));
      toast(t("stale"), { bad: true });
      return;
    }
    const blocker = this.store.blocker({ ...change, except: booking.id });
    this.timeline.outline(blocker?.id);
    const text = sentences({ ...error.problem, detail: errorText(error) }, this.nameOf).join(" ");
    const [slot] = error.problem.alternatives ?? [];
    toast(text, {
      bad: true,
      label: slot && t("move_to", { slot: slotText(slot) }),
      act: slot && (() => this.moveTo(booking.id, slot)),
    });
  }

  /** @param {number} id @param {Slot} slot */
  moveTo(id, slot) {
    const booking = this.store.get(id);
    const place = { devices: slot.devices, from: Date.parse(slot.start), to: Date.parse(slot.end) };
    if (booking) this.move(booking, place);
  }

  /** Cancel an upcoming booking or release a running one, after asking. @param {Booking} booking */
  async giveUp(booking) {
    const running = booking.from <= now();
    const span = words.span(booking.from, booking.to);
    if (!confirm(t(running ? "ask_release" : "ask_cancel", { span }))) return;
    try {
      const { revision } = booking;
      this.store.upsert(rowOf(await call("DELETE", `bookings/${booking.id}/`, { revision })));
      this.timeline.drawOne(booking.id);
      toast(t(running ? "released" : "cancelled"));
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      this.refused(booking, booking, error);
    }
  }

  /** The row on which this booking has the focus, to give it back there. @param {number} id */
  focusedDevice(id) {
    for (const [device, box] of this.timeline.drawn.get(id) ?? []) {
      if (box === document.activeElement) return device;
    }
    return undefined;
  }
}

/** Only what changes: the start of a running booking may not even be named. @param {Booking} booking @param {Draft} change */
function difference(booking, change) {
  return {
    ...(change.from === booking.from ? {} : { start: iso(change.from) }),
    ...(change.to === booking.to ? {} : { end: iso(change.to) }),
    ...(change.devices.join() === booking.devices.join() ? {} : { devices: change.devices }),
  };
}
