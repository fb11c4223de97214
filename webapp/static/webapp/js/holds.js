// Hosts that are held: nothing is opened or closed there until a time, or until somebody resumes.
// Shown wherever devices are; over by the clock even if nobody says so.

import { config, now, t, words } from "./page.js";

/** @import { Hold } from "./page.js" */

/** @type {Record<string, Hold>} by the name of the host */
let holds = config.holds ?? {};

/**
 * What an event of the calendar's socket tells; nothing: it has just connected, and tells of holds if there are any.
 * @param {{ holds: Record<string, Hold> }} [row]
 */
export function takeHolds(row) {
  holds = row?.holds ?? {};
  showHolds();
}

/** @param {string} host @returns {string} empty where it is not held */
export function holdText(host) {
  const hold = holds[host];
  if (!hold || Date.parse(hold.until) <= now()) return "";
  return t("held_until", {
    until: words.until(Date.parse(hold.until), now()),
    reason: hold.reason,
  });
}

/** Write it into every element that says whose hold it shows. */
export function showHolds() {
  for (const note of document.querySelectorAll("[data-hold]")) {
    if (!(note instanceof HTMLElement)) continue;
    note.textContent = holdText(note.dataset.hold ?? "");
    note.hidden = !note.textContent;
  }
}
