// Draws devices by time. It knows what to draw and where; what a gesture means is in drag.js and
// keys.js, what to do about it in the page. Elements are kept per booking and device, so that an
// update neither loses the focus nor repaints its neighbours.

import { closest, make } from "./dom.js";
import { editable } from "./gesture.js";
import { now, t, words } from "./page.js";
import { isGone } from "./store.js";
import { drawAxis } from "./timeline-axis.js";
import { hostHead, nameCell, showVerdict } from "./timeline-rows.js";
import { durationText } from "./zoned.js";

/** @import { Axis } from "./axis.js" */
/** @import { Booking, Store } from "./store.js" */
/** @import { DeviceRow, HostRow, Verdict } from "./timeline-rows.js" */

/** @typedef {{ devices: string[], from: number, to: number }} Draft */
/** @typedef {Draft & { how: "dragging" | "pending", blocked: boolean }} Proposal */

// Around the circle, without the blue of one's own bookings.
const HUES = [
  290, 302, 314, 326, 338, 350, 2, 14, 26, 38, 50, 62, 140, 152, 164, 176, 188, 200, 212, 224,
];
// How wide the present time is written, and half of how wide an hour is.
const NOW_PX = 46;
const HOUR_PX = 9;

export class Timeline {
  /**
   * @param {HTMLElement} root
   * @param {Store} store
   * @param {{ username: string, operator: boolean }} me
   */
  constructor(root, store, me) {
    this.root = root;
    this.store = store;
    this.me = me;
    /** @type {Map<string, HTMLElement>} by device */
    this.lanes = new Map();
    /** @type {Map<number, Map<string, HTMLButtonElement>>} by booking, then device */
    this.drawn = new Map();
    /** @type {Map<number, Proposal>} where a booking is shown while it is dragged or saved */
    this.proposals = new Map();
    /** @type {{ label: HTMLElement, fraction: number }[]} */
    this.hourLabels = [];
    /** Of the lanes, in pixels. */
    this.width = 0;
    /** @type {Draft | null} */
    this.draft = null;
    /** What the rows were built for. */
    this.shown = "";
    this.draftPending = false;
    /** @type {HTMLElement[]} */
    this.draftBoxes = [];
    new ResizeObserver(() => this.axis && drawAxis(this)).observe(root);
  }

  /**
   * Show these days and rows. Rows that are there already stay, with the focus and any gesture on them.
   * @param {Axis} axis
   * @param {HostRow[]} hosts
   */
  show(axis, hosts) {
    const shown = JSON.stringify([axis.start, axis.end, hosts]);
    if (shown !== this.shown) this.build(axis, hosts);
    this.shown = shown;
    this.draw();
  }

  /** @param {Axis} axis @param {HostRow[]} hosts */
  build(axis, hosts) {
    this.axis = axis;
    this.lanes.clear();
    this.drawn.clear();
    this.root.style.setProperty("--lane-min", `${Math.round(axis.hours * smallest(axis))}px`);
    this.labels = make("div", { class: "tl-labels", "aria-hidden": "true" });
    this.grid = make("div", { class: "tl-grid", "aria-hidden": "true" });
    this.nowLine = make("div", { class: "tl-now", "aria-hidden": "true" });
    this.nowLabel = make("span", { class: "tl-now-label", "aria-hidden": "true" });
    const head = make(
      "div",
      { class: "tl-head" },
      make("div", { class: "tl-corner" }),
      this.labels,
    );
    this.labels.append(this.nowLabel);
    const over = make("div", { class: "tl-over", "aria-hidden": "true" }, this.nowLine);
    const rows = hosts.flatMap((host) => [
      hostHead(host),
      ...host.devices.map((one) => this.row(one)),
    ]);
    const inner = make("div", { class: "tl-inner" }, head, this.grid, ...rows, over);
    this.root.replaceChildren(inner);
    drawAxis(this);
  }

  /** @param {DeviceRow} device */
  row(device) {
    const lane = make("div", {
      class: "tl-lane",
      role: "group",
      tabindex: "0",
      "data-device": device.uuid,
      "aria-label": t("lane", { device: device.name, host: device.host }),
      "aria-describedby": "timeline-keys",
    });
    this.lanes.set(device.uuid, lane);
    const row = make("div", { class: "tl-row", "data-row": device.uuid }, nameCell(device), lane);
    row.classList.toggle("unusable", !device.bookable || device.state !== "ok");
    return row;
  }

  draw() {
    const known = this.store.bookings().map((booking) => booking.id);
    for (const id of new Set([...this.drawn.keys(), ...known])) this.drawOne(id);
    this.drawDraft();
    this.moveNow();
  }

  /** Draw one booking as it is now, or remove it. @param {number} id */
  drawOne(id) {
    const booking = this.store.get(id);
    const place = booking && this.placeOf(booking);
    const boxes = this.drawn.get(id) ?? new Map();
    for (const [device, box] of boxes) {
      if (place?.devices.includes(device)) continue;
      box.remove();
      boxes.delete(device);
    }
    if (booking && place) {
      for (const device of place.devices) this.drawBox(booking, place, device, boxes);
    }
    if (boxes.size) this.drawn.set(id, boxes);
    else this.drawn.delete(id);
  }

  /** Where a booking is to be drawn, if it is. @param {Booking} booking @returns {Draft | undefined} */
  placeOf(booking) {
    const place = this.proposals.get(booking.id) ?? booking;
    const visible = !isGone(booking) && this.axis?.shows(place.from, place.to);
    return visible ? place : undefined;
  }

  /**
   * @param {Booking} booking
   * @param {Draft} place
   * @param {string} device
   * @param {Map<string, HTMLButtonElement>} boxes
   */
  drawBox(booking, place, device, boxes) {
    const lane = this.lanes.get(device);
    if (!lane) return;
    let box = boxes.get(device);
    if (!box) {
      box = make("button", { type: "button", "data-booking": String(booking.id) });
      boxes.set(device, box);
      lane.append(box);
    }
    const look = this.lookOf(booking, place);
    // What looks the same already is left alone: most of a calendar, at most fetches and ticks.
    if (box.dataset.look === look) return;
    box.dataset.look = look;
    this.dress(box, booking, place);
    this.stand(box, place);
  }

  /** All that decides how a booking looks. @param {Booking} booking @param {Draft} place */
  lookOf(booking, place) {
    const proposal = this.proposals.get(booking.id);
    const shown = [booking.revision, booking.purpose, booking.owner?.name, place.from, place.to];
    const past = place.to <= now();
    return [
      ...shown,
      past,
      heldBack(booking),
      editable(booking, this.me, now()),
      proposal?.how,
      proposal?.blocked,
    ].join();
  }

  /** @param {HTMLButtonElement} box @param {Booking} booking @param {Draft} place */
  dress(box, booking, place) {
    const proposal = this.proposals.get(booking.id);
    const mine = booking.owner?.username === this.me.username;
    const classes = {
      mine,
      past: place.to <= now(),
      waiting: booking.state === "pending",
      maintenance: booking.kind === "maintenance",
      movable: editable(booking, this.me, now()) === "all",
      pending: proposal?.how === "pending",
      dragging: proposal?.how === "dragging",
      blocked: proposal?.blocked ?? false,
      "held-back": heldBack(booking) !== "",
    };
    const names = Object.entries(classes).filter(([, on]) => on);
    box.className = ["bk", ...names.map(([name]) => name)].join(" ");
    if (mine) box.style.removeProperty("--hue");
    else box.style.setProperty("--hue", String(hueOf(booking.owner?.username ?? "")));
    const who = this.whoOf(booking);
    const span = words.span(place.from, place.to);
    const told = [heldBack(booking), booking.purpose].filter(Boolean);
    // What is seen shrinks with the box; what is spoken does not.
    box.replaceChildren(
      make("span", { class: "bk-who", "aria-hidden": "true", text: who }),
      make("small", { "aria-hidden": "true", text: words.clockSpan(place.from, place.to) }),
      make("span", { class: "sr-only", text: [who, span, ...told].join(", ") }),
    );
    box.title = [who, span, ...told].join("\n");
  }

  /** @param {Booking} booking */
  whoOf(booking) {
    if (booking.kind === "maintenance") return t("maintenance");
    if (booking.owner?.username === this.me.username) return t("you");
    return booking.owner?.name ?? t("booked");
  }

  /** Set an element's place on its lane. @param {HTMLElement} box @param {{ from: number, to: number }} span */
  stand(box, { from, to }) {
    if (!this.axis) return;
    const left = Math.max(0, this.axis.fraction(from));
    const right = Math.min(1, this.axis.fraction(to));
    box.style.left = `${left * 100}%`;
    box.style.width = `${(right - left) * 100}%`;
    box.classList.toggle("cut-left", from < this.axis.start);
    box.classList.toggle("cut-right", to > this.axis.end);
  }

  /** Show a booking elsewhere than it is; null: where it is. @param {number} id @param {Proposal | null} proposal */
  propose(id, proposal) {
    if (proposal) this.proposals.set(id, proposal);
    else this.proposals.delete(id);
    this.drawOne(id);
  }

  /** @param {Draft | null} draft @param {boolean} [pending] */
  setDraft(draft, pending = false) {
    this.draft = draft;
    this.draftPending = pending;
    this.drawDraft();
  }

  drawDraft() {
    for (const box of this.draftBoxes) box.remove();
    this.draftBoxes = [];
    const draft = this.draft;
    if (!draft || !this.axis?.shows(draft.from, draft.to)) return;
    const blocked = this.store.blocker(draft) !== undefined;
    const oneDay = this.axis.days.length === 1;
    const span = oneDay ? words.clockSpan(draft.from, draft.to) : words.span(draft.from, draft.to);
    const text = `${span} · ${durationText(draft.to - draft.from)}`;
    for (const device of draft.devices) {
      const box = make("div", { class: "bk draft" }, make("span", { text }));
      box.classList.toggle("blocked", blocked);
      box.classList.toggle("pending", this.draftPending);
      this.stand(box, draft);
      this.lanes.get(device)?.append(box);
      this.draftBoxes.push(box);
    }
  }

  /** Whether something is being drafted, moved or saved. */
  get isBusy() {
    return this.draft !== null || this.proposals.size > 0;
  }

  /** Outline what stands in the way. @param {number | undefined} id */
  outline(id) {
    for (const box of this.root.querySelectorAll(".bk.in-the-way"))
      box.classList.remove("in-the-way");
    if (id === undefined) return;
    for (const box of this.drawn.get(id)?.values() ?? []) box.classList.add("in-the-way");
  }

  moveNow() {
    if (!this.axis || !this.nowLine || !this.nowLabel) return;
    const present = now();
    const hidden = !this.axis.contains(present);
    const left = `${this.axis.fraction(present) * 100}%`;
    this.nowLine.hidden = this.nowLabel.hidden = hidden;
    this.nowLine.style.left = this.nowLabel.style.left = left;
    this.nowLabel.textContent = words.clock.format(present);
    this.nowLabel.classList.toggle("flip", this.axis.fraction(present) > 0.94);
    this.clearUnderNow();
  }

  /** Labels that the present time would cover make way. By arithmetic: asking for boxes costs a layout. */
  clearUnderNow() {
    if (!this.axis || !this.nowLabel) return;
    const present = this.axis.fraction(now());
    const reach = this.nowLabel.classList.contains("flip") ? [-NOW_PX, 0] : [0, NOW_PX];
    for (const { label, fraction } of this.hourLabels) {
      const away = (fraction - present) * this.width;
      const covered = reach[0] - HOUR_PX < away && away < reach[1] + HOUR_PX;
      label.classList.toggle("covered", covered && !this.nowLabel.hidden);
    }
  }

  /** What a minute changes: the now line, and bookings that are past. */
  tick() {
    this.moveNow();
    for (const id of this.drawn.keys()) this.drawOne(id);
  }

  /** @param {string} device @param {Verdict} verdict */
  setVerdict(device, verdict) {
    showVerdict(this.root, device, verdict);
  }

  /** Where a pointer is in time. @param {number} clientX */
  instantAt(clientX) {
    const lane = this.lanes.values().next().value;
    if (!lane || !this.axis) return 0;
    const box = lane.getBoundingClientRect();
    return this.axis.instant((clientX - box.left) / box.width);
  }

  /** The device whose row a pointer is over. @param {number} x @param {number} y */
  deviceAt(x, y) {
    const row = closest(document.elementFromPoint(x, y), "[data-row]");
    return row?.dataset.row;
  }

  /** All devices in the order in which they stand. */
  order() {
    return [...this.lanes.keys()];
  }

  /** @param {number} id @param {string} [device] */
  focus(id, device) {
    const boxes = this.drawn.get(id);
    (boxes?.get(device ?? "") ?? boxes?.values().next().value)?.focus();
  }
}

/** Why a running booking cannot be used yet; empty if it can. @param {Booking} booking */
function heldBack({ opening, from, to }) {
  return opening && from <= now() && now() < to ? t("held_back", { reason: opening.reason }) : "";
}

/** How narrow an hour may get before the timeline scrolls, in pixels. @param {Axis} axis */
function smallest({ hours }) {
  if (hours <= 25) return 14;
  return hours <= 73 ? 10 : 6;
}

/** The same colour for the same person, everywhere; never the blue of one's own bookings. @param {string} name */
function hueOf(name) {
  let hash = 2166136261;
  for (const letter of name) hash = Math.imul(hash ^ (letter.codePointAt(0) ?? 0), 16777619) >>> 0;
  return HUES[(hash >>> 8) % HUES.length];
}
