// My bookings and the page of one booking: forms that ask first, countdowns, and the clipboard.

import "./asking.js";
import { now, t } from "./page.js";
import { durationText, MINUTE } from "./zoned.js";

function countDown() {
  for (const time of document.querySelectorAll("[data-ends]")) {
    const left = Date.parse(time.getAttribute("data-ends") ?? "") - now();
    time.textContent =
      left > 0 ? t("ends_in", { duration: durationText(Math.max(left, MINUTE)) }) : "";
  }
}
countDown();
setInterval(countDown, 15_000);

for (const button of document.querySelectorAll("[data-copy]")) {
  // Only offered where the browser lets a page write to the clipboard.
  if (!(button instanceof HTMLElement) || !navigator.clipboard) continue;
  button.hidden = false;
  button.addEventListener("click", () => {
    const source = document.getElementById(button.dataset.copy ?? "");
    navigator.clipboard.writeText(source?.textContent ?? "");
    button.textContent = t("copied");
  });
}
