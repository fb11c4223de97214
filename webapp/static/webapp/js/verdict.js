// Says in words whether a wish can be had: free, who stands in the way until when, which rules object,
// and the nearest slot as one click.

import { make } from "./dom.js";
import { now, t, words } from "./page.js";

/** @import { Blocker, Objection, Slot } from "./api.js" */

/**
 * What a dry run or a refusal tells.
 * @typedef {object} Finding
 * @property {Blocker[]} [blockers]
 * @property {Objection[]} [objections]
 * @property {Slot[]} [alternatives]
 * @property {Record<string, string[]>} [errors]
 * @property {string} [detail]
 */

/** @param {Slot} slot */
export function slotText(slot) {
  return words.span(Date.parse(slot.start), Date.parse(slot.end));
}

/** @param {Blocker} blocker @param {(uuid: string) => string} nameOf */
function blockerText({ device, owner, end }, nameOf) {
  const until = words.until(Date.parse(end), now());
  const facts = { device: nameOf(device), until };
  return owner ? t("blocked_by", { ...facts, who: owner }) : t("blocked", facts);
}

/**
 * Every sentence that a finding holds.
 * @param {Finding} finding
 * @param {(uuid: string) => string} nameOf
 */
export function sentences({ blockers = [], objections = [], errors = {}, detail }, nameOf) {
  const found = [
    ...blockers.map((one) => blockerText(one, nameOf)),
    ...objections.map((one) => one.text),
    ...Object.values(errors).flat(),
  ];
  return found.length ? [...new Set(found)] : detail ? [detail] : [];
}

/**
 * @param {Finding} finding
 * @param {object} options
 * @param {(uuid: string) => string} options.nameOf
 * @param {(slot: Slot) => void} options.onUse
 * @returns {HTMLElement}
 */
export function refusal(finding, { nameOf, onUse }) {
  const box = make("div", { class: "note bad" });
  for (const text of sentences(finding, nameOf)) box.append(make("p", { text }));
  const [slot] = finding.alternatives ?? [];
  if (slot) {
    const text = t("use_slot", {
      slot: slotText(slot),
      devices: slot.devices.map(nameOf).join(", "),
    });
    const button = make("button", { type: "button", class: "btn s", "data-use": true, text });
    button.addEventListener("click", () => onUse(slot));
    box.append(button);
  }
  return box;
}

/** @typedef {{ kind: string, limit: number, used: number, asked: number }} Usage of one rule's limit */

/**
 * It can be had, and what is used up then.
 * @param {Usage[]} usage
 */
export function good(usage) {
  const box = make("div", { class: "note ok" }, make("p", { text: t("free") }));
  const { used, limit, asked } = usage.find((one) => one.kind === "max_devices") ?? {};
  if (used !== undefined && limit !== undefined && asked !== undefined) {
    box.append(make("p", { text: t("devices_used", { used, limit, asked }) }));
  }
  return box;
}
