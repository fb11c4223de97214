// The heads of the timeline's rows: hosts, devices, and the verdict on each.

import { make } from "./dom.js";
import { t, words } from "./page.js";

/**
 * @typedef {object} DeviceRow
 * @property {string} uuid
 * @property {string} host
 * @property {number} index
 * @property {string} name
 * @property {string} model
 * @property {number | null} memory_bytes
 * @property {string} state
 * @property {boolean} bookable
 */

/**
 * @typedef {object} HostRow
 * @property {string} name
 * @property {string | null} silent_since
 * @property {DeviceRow[]} devices
 */

/**
 * @typedef {object} Verdict
 * @property {string} code free, in_use, idle, unbooked_use, foreign_use, no_data, lost, needs_attention
 * @property {string} text
 * @property {string | null} [since]
 */

/** @type {Record<string, string>} */
const CHIPS = {
  free: "free",
  in_use: "busy",
  idle: "idle",
  unbooked_use: "bad",
  foreign_use: "bad",
  lost: "bad",
  needs_attention: "bad",
};

/** @param {HostRow} host */
export function hostHead(host) {
  const head = make(
    "div",
    { class: "tl-host", "data-host": host.name },
    make("b", { text: host.name }),
    make("span", { text: summary(host.devices) }),
  );
  if (host.silent_since) {
    const since = words.dayTime(Date.parse(host.silent_since));
    head.append(make("span", { class: "silent", text: t("host_silent", { since }) }));
    head.classList.add("is-silent");
  }
  return head;
}

/** 4 × A100 80GB. @param {DeviceRow[]} devices */
function summary(devices) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { model } of devices) counts.set(model, (counts.get(model) ?? 0) + 1);
  return [...counts].map(([model, count]) => `${count} × ${model}`).join(", ");
}

/** @param {DeviceRow} device */
export function nameCell(device) {
  return make(
    "div",
    { class: "tl-name" },
    deviceName(device),
    make("span", { class: "chip unknown", "data-chip": device.uuid, text: t("chip_no_data") }),
  );
}

/** Where room is short the model gives way, never the number. @param {DeviceRow} device */
function deviceName({ name, model, index }) {
  const parts = [make("span", { text: model }), make("b", { text: `· ${index}` })];
  return make("span", { class: "device-name", title: name }, ...parts);
}

/** @param {HTMLElement} root @param {string} device @param {Verdict} verdict */
export function showVerdict(root, device, verdict) {
  const chip = root.querySelector(`[data-chip="${CSS.escape(device)}"]`);
  if (chip instanceof HTMLElement) dressChip(chip, verdict, t(`chip_${verdict.code}`));
}

/** @param {HTMLElement} chip @param {Verdict} verdict @param {string} text */
export function dressChip(chip, verdict, text) {
  chip.className = `chip ${CHIPS[verdict.code] ?? "unknown"}`;
  chip.textContent = text;
  chip.title = verdict.text;
}
