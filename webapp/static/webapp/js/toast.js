// Short messages at the foot of the page, spoken by screen readers, with at most one thing to do.

import { find, make } from "./dom.js";
import { t } from "./page.js";

const SHOWN_MS = 8_000;

/**
 * @param {string} text
 * @param {{ label?: string, act?: () => void, bad?: boolean }} [options]
 */
export function toast(text, { label, act, bad = false } = {}) {
  const box = make("div", { class: bad ? "toast bad" : "toast" }, make("span", { text }));
  const close = () => box.remove();
  let timer = setTimeout(close, SHOWN_MS);
  if (label && act) {
    const button = make("button", { type: "button", class: "btn s", text: label });
    button.addEventListener("click", () => {
      close();
      act();
    });
    box.append(button);
  }
  const dismiss = make("button", {
    type: "button",
    class: "toast-close",
    "aria-label": t("dismiss"),
    text: "×",
  });
  dismiss.addEventListener("click", close);
  box.append(dismiss);
  // Whoever reads or reaches for the button gets the time for it.
  box.addEventListener("pointerenter", () => clearTimeout(timer));
  box.addEventListener("focusin", () => clearTimeout(timer));
  box.addEventListener("pointerleave", () => {
    timer = setTimeout(close, SHOWN_MS);
  });
  find("#toasts", HTMLElement).replaceChildren(box);
}
