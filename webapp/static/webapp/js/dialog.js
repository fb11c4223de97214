// The booking dialog. It drafts, asks the server while one types, and books. Nothing that was typed is
// lost by an error; a repeated submit of the same wish carries the same key, so it books once.

import { ApiProblem, call, iso } from "./api.js";
import { snapUp } from "./axis.js";
import { debounced, find, make } from "./dom.js";
import { config, now, t, words } from "./page.js";
import { simulatedTag } from "./timeline-rows.js";
import { good, refusal } from "./verdict.js";
import { WallField } from "./wallfield.js";
import { durationText, HOUR } from "./zoned.js";

/** @import { Slot } from "./api.js" */
/** @import { Row } from "./store.js" */
/** @import { HostRow } from "./timeline-rows.js" */
/** @import { Draft } from "./timeline.js" */
/** @import { Finding, Usage } from "./verdict.js" */

/**
 * @typedef {object} Events
 * @property {(draft: Draft | null, pending: boolean) => void} onDraft the draft changed, or is gone
 * @property {(row: Row) => void} onBooked
 */

const TYPING_MS = 250;
const NOW_MS = 60_000;

export class BookDialog {
  /** @param {HTMLDialogElement} dialog @param {Events} events */
  constructor(dialog, events) {
    this.dialog = dialog;
    this.events = events;
    this.form = find("form", HTMLFormElement, dialog);
    this.devices = find("#book-devices", HTMLElement, dialog);
    this.purpose = find("#book-purpose", HTMLInputElement, dialog);
    this.verdict = find("#book-verdict", HTMLElement, dialog);
    this.submit = find("[type=submit]", HTMLButtonElement, dialog);
    const changed = () => this.changed();
    const start = find("[data-wall=start]", HTMLElement, dialog);
    this.start = new WallField(start, words.zone, () => this.retimed());
    this.end = new WallField(find("[data-wall=end]", HTMLElement, dialog), words.zone, changed);
    /** @type {{ wish: string, body: object, key: string } | null} the last submit, until it is answered */
    this.attempt = null;
    this.startsNow = false;
    this.check = debounced(() => this.dryRun(), TYPING_MS);
    this.listen();
  }

  listen() {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.book();
    });
    this.devices.addEventListener("change", () => this.changed());
    for (const button of this.dialog.querySelectorAll("[data-hours]")) {
      const hours = Number(button.getAttribute("data-hours"));
      button.addEventListener("click", () => this.setDuration(hours * HOUR));
    }
    find("[data-close]", HTMLElement, this.dialog).addEventListener("click", () =>
      this.dialog.close(),
    );
    this.dialog.addEventListener("close", () => {
      this.running?.abort();
      this.events.onDraft(null, false);
    });
  }

  /** @param {Draft} draft @param {HostRow[]} hosts */
  open(draft, hosts) {
    this.names = new Map(
      hosts.flatMap((host) =>
        host.devices.map(({ uuid, name }) => [
          uuid,
          t("device_on", { device: name, host: host.name }),
        ]),
      ),
    );
    this.offerDevices(hosts, draft.devices);
    this.startsNow = Math.abs(draft.from - now()) < NOW_MS;
    this.start.set(draft.from);
    this.end.set(draft.to);
    this.attempt = null;
    this.verdict.replaceChildren();
    if (!this.dialog.open) this.dialog.showModal();
    this.changed();
  }

  /** @param {HostRow[]} hosts @param {string[]} chosen */
  offerDevices(hosts, chosen) {
    this.devices.replaceChildren(
      ...hosts.map((host) => {
        const boxes = host.devices.map(({ uuid, name, bookable }) => {
          const checked = chosen.includes(uuid);
          const box = make("input", {
            type: "checkbox",
            value: uuid,
            checked,
            disabled: !bookable,
          });
          return make("label", {}, box, make("span", { text: name }));
        });
        return make("div", { class: "host-choice" }, hostName(host), ...boxes);
      }),
    );
    this.devices.querySelector(":checked")?.scrollIntoView({ block: "nearest" });
  }

  /** @param {string} uuid */
  nameOf(uuid) {
    return this.names?.get(uuid) ?? uuid;
  }

  /** @returns {Draft | null} what the form says, when it makes sense */
  draft() {
    const boxes = this.devices.querySelectorAll("input:checked");
    const devices = [...boxes].map((box) => /** @type {HTMLInputElement} */ (box).value);
    const from = this.startsNow ? now() : this.start.at;
    const to = this.end.at;
    if (!devices.length || from === null || to === null || from >= to) return null;
    return { devices, from, to };
  }

  /** A new start keeps the duration. */
  retimed() {
    const before = this.shownDuration ?? HOUR;
    this.startsNow = false;
    if (this.start.at !== null) this.end.set(this.start.at + before);
    this.changed();
  }

  /** @param {number} duration */
  setDuration(duration) {
    if (this.start.at === null) return;
    // A slot that begins now ends on the grid like every other.
    this.end.set(snapUp(this.start.at + duration, config.grid_s * 1_000));
    this.changed();
  }

  changed() {
    const draft = this.draft();
    this.shownDuration = draft ? draft.to - draft.from : this.shownDuration;
    const length = draft ? durationText(draft.to - draft.from) : "";
    this.submit.textContent = draft ? t("book_for", { duration: length }) : t("book");
    this.submit.disabled = draft === null;
    if (draft) this.events.onDraft(draft, false);
    this.check();
  }

  async dryRun() {
    this.running?.abort();
    const draft = this.draft();
    if (!draft || !this.dialog.open) {
      this.verdict.replaceChildren(...this.missing());
      return;
    }
    // This very wish was sent and has no answer yet: if it was booked, it would stand in its own way.
    if (this.attempt?.wish === this.wish(draft)) return;
    this.running = new AbortController();
    try {
      const { signal } = this.running;
      const found = await call("POST", "bookings/check", { body: this.body(draft), signal });
      this.show(found);
    } catch (error) {
      // A newer question is on its way.
      if (error instanceof ApiProblem) this.explain(error);
    }
  }

  /** What is still to be filled in. @returns {HTMLElement[]} */
  missing() {
    if (!this.devices.querySelector(":checked")) return [make("p", { text: t("choose_device") })];
    const [from, to] = [this.start.at, this.end.at];
    const reversed = from !== null && to !== null && from >= to;
    return reversed ? [make("div", { class: "note bad", text: t("end_before_start") })] : [];
  }

  /** @param {Finding & { free: boolean, quota: Usage[] }} found */
  show(found) {
    const clear = found.free && !found.objections?.length;
    this.verdict.replaceChildren(
      clear
        ? good(found.quota)
        : refusal(found, { nameOf: (uuid) => this.nameOf(uuid), onUse: (slot) => this.use(slot) }),
    );
  }

  /** Book the offered slot at once. @param {Slot} slot */
  use(slot) {
    for (const box of this.devices.querySelectorAll("input")) {
      box.checked = slot.devices.includes(box.value);
    }
    this.startsNow = false;
    this.start.set(Date.parse(slot.start));
    this.end.set(Date.parse(slot.end));
    this.changed();
    this.book();
  }

  /** @param {Draft} draft */
  body(draft) {
    return {
      devices: draft.devices,
      start: iso(draft.from),
      end: iso(draft.to),
      purpose: this.purpose.value.trim(),
    };
  }

  /** What makes two submits the same. @param {Draft} draft */
  wish(draft) {
    const from = this.startsNow || draft.from;
    return JSON.stringify([draft.devices, from, draft.to, this.purpose.value]);
  }

  async book() {
    const draft = this.draft();
    if (!draft || this.submit.getAttribute("aria-busy") === "true") return;
    this.running?.abort();
    const wish = this.wish(draft);
    if (this.attempt?.wish !== wish) this.attempt = { wish, body: this.body(draft), key: newKey() };
    this.submit.setAttribute("aria-busy", "true");
    this.events.onDraft(draft, true);
    try {
      const { body, key } = this.attempt;
      const made = await call("POST", "bookings/", { body, key });
      this.attempt = null;
      this.purpose.value = "";
      this.dialog.close();
      this.events.onBooked(rowOf(made));
    } catch (error) {
      if (!(error instanceof ApiProblem)) throw error;
      // Without an answer it may have been booked: the same key asks again safely.
      if (error.status !== 0) this.attempt = null;
      this.events.onDraft(draft, false);
      this.explain(error);
    } finally {
      this.submit.setAttribute("aria-busy", "false");
    }
  }

  /** @param {ApiProblem} error */
  explain(error) {
    const nameOf = (/** @type {string} */ uuid) => this.nameOf(uuid);
    const finding = { ...error.problem, detail: errorText(error) };
    const box = refusal(finding, { nameOf, onUse: (slot) => this.use(slot) });
    if (error.status === 401) box.append(signInLink());
    this.verdict.replaceChildren(box);
  }
}

/** @param {HostRow} host */
function hostName(host) {
  return make("div", { class: "host-name" }, make("b", { text: host.name }), ...simulatedTag(host));
}

/** A sentence for every kind of failure. @param {ApiProblem} error */
export function errorText(error) {
  if (error.status === 0) return t("no_connection");
  if (error.status === 401) return t("signed_out");
  if (error.status >= 500 && error.status !== 503) return t("server_trouble");
  return error.message || t("server_trouble");
}

function signInLink() {
  return make("a", {
    href: "/accounts/login/",
    target: "_blank",
    class: "btn s",
    text: t("sign_in"),
  });
}

/** The calendar row of a whole booking: devices by UUID. @param {any} booking @returns {Row} */
export function rowOf(booking) {
  return { ...booking, devices: booking.devices.map((/** @type {any} */ one) => one.uuid ?? one) };
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
