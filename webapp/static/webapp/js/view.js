// Which days and which rows the timeline shows: the controls above it, kept in the address.

import { dateField } from "./datefield.js";
import { find, make } from "./dom.js";
import { config, now, t, words } from "./page.js";
import { addDays, dayOf, HOUR, isDay, startOfHour } from "./zoned.js";

/** @import { Axis } from "./axis.js" */
/** @import { Store } from "./store.js" */
/** @import { DeviceRow, HostRow, Verdict } from "./timeline-rows.js" */

const PHONE = "(max-width: 640px)";
// Where nobody chose a day, it begins this long before now: late in the evening, too, one sees ahead.
const BEFORE_NOW_MS = 3 * HOUR;

export class View {
  /** @param {() => void} onRange other days @param {() => void} onRows other rows */
  constructor(onRange, onRows) {
    this.onRange = onRange;
    this.onRows = onRows;
    const asked = new URLSearchParams(location.search);
    const day = validDay(asked.get("day"));
    this.day = day ?? dayOf(now(), words.zone);
    /** Whether the timeline stays with the present, instead of a day that was chosen. */
    this.follows = day === null;
    this.chosenDays = [1, 3, 7].find((days) => String(days) === asked.get("days")) ?? 1;
    /** @type {HostRow[]} */
    this.all = [];
    /** @type {Map<string, string>} host -> since when it is silent */
    this.silent = new Map(Object.entries(config.silent_hosts ?? {}));
    this.phone = matchMedia(PHONE);
    this.picker = dateField(find(".day-field", HTMLElement));
    this.host = find("#filter-host", HTMLSelectElement);
    this.model = find("#filter-model", HTMLSelectElement);
    this.mine = find("#filter-mine", HTMLInputElement);
    this.free = find("#filter-free", HTMLInputElement);
    this.listen();
    this.showRange();
  }

  /** A phone shows one day. */
  get days() {
    return this.phone.matches ? 1 : this.chosenDays;
  }

  /** Where the axis begins, when that is not with the day. */
  get from() {
    const rolling = this.follows && this.days === 1;
    return rolling ? startOfHour(now() - BEFORE_NOW_MS, words.zone) : undefined;
  }

  listen() {
    this.picker.addEventListener("change", () => this.go(validDay(this.picker.value) ?? this.day));
    find("#today", HTMLElement).addEventListener("click", () => this.goToNow());
    for (const [selector, sign] of /** @type {const} */ ([
      ["#earlier", -1],
      ["#later", 1],
    ])) {
      find(selector, HTMLElement).addEventListener("click", () =>
        this.go(addDays(this.day, sign * this.days)),
      );
    }
    for (const button of document.querySelectorAll("[data-days]")) {
      button.addEventListener("click", () => {
        this.chosenDays = Number(button.getAttribute("data-days"));
        this.show();
      });
    }
    for (const filter of [this.host, this.model, this.mine, this.free]) {
      filter.addEventListener("change", () => this.onRows());
    }
    this.phone.addEventListener("change", () => this.show());
  }

  /** @param {string} day */
  go(day) {
    this.day = day;
    this.follows = false;
    this.show();
  }

  goToNow() {
    this.day = dayOf(now(), words.zone);
    this.follows = true;
    this.show();
  }

  show() {
    const query = new URLSearchParams({ days: String(this.chosenDays) });
    if (!this.follows) query.set("day", this.day);
    history.replaceState(null, "", `?${query}`);
    this.showRange();
    this.onRows();
    this.onRange();
  }

  showRange() {
    this.picker.value = this.day;
    for (const button of document.querySelectorAll("[data-days]")) {
      const chosen = Number(button.getAttribute("data-days")) === this.chosenDays;
      button.setAttribute("aria-pressed", String(chosen));
    }
  }

  /** @param {DeviceRow[]} devices as the calendar lists them: by host and index */
  setDevices(devices) {
    /** @type {Map<string, DeviceRow[]>} */
    const byHost = new Map();
    for (const device of devices) {
      byHost.set(device.host, [...(byHost.get(device.host) ?? []), device]);
    }
    this.all = [...byHost].map(([name, own]) => ({ name, silent_since: null, devices: own }));
    refill(this.host, t("all_hosts"), [...byHost.keys()]);
    refill(this.model, t("all_models"), [...new Set(devices.map((device) => device.model))].sort());
  }

  hasDevices() {
    return this.all.length > 0;
  }

  /** @param {string} uuid */
  device(uuid) {
    return this.all.flatMap((host) => host.devices).find((device) => device.uuid === uuid);
  }

  /** The chosen filters as the search for slots knows them. */
  filter() {
    return {
      ...(this.host.value ? { host: this.host.value } : {}),
      ...(this.model.value ? { model: this.model.value } : {}),
    };
  }

  /**
   * The rows to draw.
   * @param {Store} store
   * @param {Axis} axis
   * @returns {HostRow[]}
   */
  hosts(store, axis) {
    const shown = store.bookings().filter((one) => axis.shows(one.from, one.to));
    const own = shown.filter((one) => one.owner?.username === config.me.username);
    const mine = new Set(own.flatMap((one) => one.devices));
    // "Free" means free at this moment, or when the shown days begin if that is later.
    const moment = Math.max(now(), axis.start);
    const held = shown.filter((one) => one.from <= moment && moment < one.to);
    const taken = new Set(held.flatMap((one) => one.devices));
    const wanted = (/** @type {DeviceRow} */ device) =>
      (!this.host.value || device.host === this.host.value) &&
      (!this.model.value || device.model === this.model.value) &&
      (!this.mine.checked || mine.has(device.uuid)) &&
      (!this.free.checked || (device.bookable && !taken.has(device.uuid)));
    return this.all
      .map((host) => ({
        ...host,
        silent_since: this.silent.get(host.name) ?? null,
        devices: host.devices.filter(wanted),
      }))
      .filter((host) => host.devices.length > 0);
  }

  /**
   * A host is silent when nothing is known of any of its devices.
   * @param {Map<string, Verdict>} verdicts
   */
  noteSilence(verdicts) {
    const before = [...this.silent.keys()].join();
    for (const host of this.all) {
      const known = host.devices.flatMap((device) => verdicts.get(device.uuid) ?? []);
      const silent = known.length > 0 && known.every((verdict) => verdict.code === "no_data");
      const since = known[0]?.since ?? this.silent.get(host.name) ?? new Date(now()).toISOString();
      if (silent) this.silent.set(host.name, since);
      else if (known.length > 0) this.silent.delete(host.name);
    }
    if (before !== [...this.silent.keys()].join()) this.onRows();
  }
}

/** @param {string | null} text */
function validDay(text) {
  return text && isDay(text.trim()) ? text.trim() : null;
}

/** @param {HTMLSelectElement} select @param {string} all @param {string[]} names */
function refill(select, all, names) {
  const chosen = select.value;
  select.replaceChildren(
    make("option", { value: "", text: all }),
    ...names.map((name) => make("option", { value: name, text: name })),
  );
  select.value = names.includes(chosen) ? chosen : "";
}
