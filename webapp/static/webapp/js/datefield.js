// Dates are written as YYYY-MM-DD, whatever country the browser comes from; the browser's own picker
// stands behind the little calendar, and on touch screens over the whole field.

import { find } from "./dom.js";

/**
 * Couples the text field in a box with the picker beside it.
 * @param {HTMLElement} box
 * @returns {HTMLInputElement} the text field
 */
export function dateField(box) {
  const text = find("[type=text]", HTMLInputElement, box);
  const picker = find(".pick", HTMLInputElement, box);
  picker.addEventListener("pointerdown", () => {
    picker.value = machineText(text.value);
  });
  picker.addEventListener("change", () => {
    if (!picker.value) return;
    text.value = humanText(picker.value);
    for (const name of ["input", "change"]) {
      text.dispatchEvent(new Event(name, { bubbles: true }));
    }
  });
  return text;
}

/** 2026-12-01 16:00, to be read. @param {string} wall */
export function humanText(wall) {
  return wall.replace("T", " ");
}

/** 2026-12-01T16:00, to be worked with. @param {string} typed */
export function machineText(typed) {
  return typed.trim().replace(/\s+/, "T");
}
