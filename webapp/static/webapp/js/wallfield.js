// A date and time field in the person's zone. A time that does not exist is refused; of one that the
// clock shows twice both are offered with their offsets, the earlier preselected.

import { dateField, humanText, machineText } from "./datefield.js";
import { find, make } from "./dom.js";
import { t } from "./page.js";
import { instantsOf, isDay, offsetOf, wallOf } from "./zoned.js";

const EXAMPLE = "2026-12-01 16:00";

export class WallField {
  /**
   * @param {HTMLElement} box holds the input, a place for its fault and one for the choice
   * @param {string} zone
   * @param {() => void} onChange
   */
  constructor(box, zone, onChange) {
    this.zone = zone;
    this.onChange = onChange;
    this.input = dateField(box);
    this.note = find(".field-note", HTMLElement, box);
    this.choice = find(".twice", HTMLElement, box);
    /** @type {number | null} */
    this.at = null;
    this.input.addEventListener("input", () => {
      this.read();
      onChange();
    });
    // Not while one types: half a time is no mistake yet.
    this.input.addEventListener("change", () => {
      const wrong = this.input.value && !isWall(this.wall);
      if (wrong) this.say(t("write_time", { example: EXAMPLE }));
    });
  }

  get wall() {
    return machineText(this.input.value);
  }

  /** @param {number} at */
  set(at) {
    this.input.value = humanText(wallOf(at, this.zone));
    this.read();
    if (this.at === null) return;
    // The field shows whole minutes; what was set keeps its seconds.
    this.at = at;
    for (const radio of this.choice.querySelectorAll("input")) {
      radio.checked = offsetOf(at, this.zone) === radio.value;
    }
  }

  read() {
    const known = isWall(this.wall);
    const found = known ? instantsOf(this.wall, this.zone) : [];
    this.at = found[0] ?? null;
    this.say(known && !found.length ? t("no_such_time", { time: this.clockText() }) : "");
    this.offer(found);
  }

  clockText() {
    return this.wall.slice(11, 16);
  }

  /** @param {string} fault */
  say(fault) {
    this.note.textContent = fault;
    if (fault) this.input.setAttribute("aria-invalid", "true");
    else this.input.removeAttribute("aria-invalid");
  }

  /** @param {number[]} found */
  offer(found) {
    this.choice.hidden = found.length < 2;
    if (this.choice.hidden) {
      this.choice.replaceChildren();
      return;
    }
    this.choice.replaceChildren(
      make("legend", { text: t("time_twice", { time: this.clockText() }) }),
      ...found.map((at, index) => {
        const value = offsetOf(at, this.zone);
        const name = `${this.input.id}-offset`;
        const radio = make("input", { type: "radio", name, value, checked: index === 0 });
        radio.addEventListener("change", () => {
          this.at = at;
          this.onChange();
        });
        return make("label", {}, radio, `${this.clockText()} ${value}`);
      }),
    );
  }
}

/** @param {string} text @returns {boolean} whether it names a day and a time of some clock */
function isWall(text) {
  return (
    /^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text) && isDay(text.slice(0, 10)) && text.slice(11) < "24:00"
  );
}
