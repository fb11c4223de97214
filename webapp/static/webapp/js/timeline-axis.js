// The labels over the timeline and the lines behind it.

import { labelStep } from "./axis.js";
import { make } from "./dom.js";
import { words } from "./page.js";
import { HOUR } from "./zoned.js";

/** @import { Tick } from "./axis.js" */
/** @import { Timeline } from "./timeline.js" */

// How wide a repeated hour is with its offset: where two do not fit, only the second is labelled.
const REPEATED_PX = 44;

/** Draw hours and days as wide as there is room for. @param {Timeline} timeline */
export function drawAxis(timeline) {
  const { axis, labels, grid, nowLabel } = timeline;
  if (!axis || !labels || !grid || !nowLabel) return;
  timeline.width = labels.clientWidth;
  const hourWidth = timeline.width / axis.hours;
  const step = labelStep(hourWidth);
  const ticks = axis.ticks().filter((tick) => tick.repeated || tick.hour % step === 0);
  // At the left edge stands the day's own label; an hour there would be cut in half.
  const dayStarts = new Set(axis.days.map((day) => day.start));
  timeline.hourLabels = ticks
    .filter(
      (tick) => !dayStarts.has(tick.at) && (hourWidth >= REPEATED_PX || !isFirst(tick, ticks)),
    )
    .map((tick) => {
      const label = make("i", { text: tick.label, class: tick.repeated ? "repeated" : undefined });
      label.style.left = percent(axis.fraction(tick.at));
      return { label, fraction: axis.fraction(tick.at) };
    });
  const days = axis.days.map((day) => {
    const label = make("b", { text: words.day(day.start) });
    label.style.left = percent(axis.fraction(day.start));
    label.style.width = percent((day.end - day.start) / (axis.end - axis.start));
    return label;
  });
  labels.replaceChildren(...days, ...timeline.hourLabels.map(({ label }) => label), nowLabel);
  grid.replaceChildren(
    ...ticks.map((tick) => {
      const line = make("div", { class: dayStarts.has(tick.at) ? "day" : undefined });
      line.style.left = percent(axis.fraction(tick.at));
      return line;
    }),
  );
  timeline.moveNow();
}

/** Whether its hour comes once more. @param {Tick} tick @param {Tick[]} ticks */
function isFirst(tick, ticks) {
  return ticks.some(
    ({ at, hour, repeated }) => repeated && hour === tick.hour && at - tick.at === HOUR,
  );
}

/** @param {number} fraction */
function percent(fraction) {
  return `${fraction * 100}%`;
}
