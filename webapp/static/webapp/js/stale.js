// The bar that says how old the data on the page is while no connection is to be had.

import { find, make } from "./dom.js";
import { t, words } from "./page.js";

const PATIENCE_MS = 3_000;

/** @type {Map<string, number>} when each broken connection last brought something */
const lost = new Map();
let ended = false;

function render() {
  const bar = find("#stale", HTMLElement);
  if (ended) return;
  bar.hidden = lost.size === 0;
  document.body.classList.toggle("is-stale", !bar.hidden);
  if (bar.hidden) return;
  bar.textContent = t("reconnecting", { time: words.clock.format(Math.min(...lost.values())) });
}

/** @param {string} name of the connection */
export function showStale(name) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return {
    fresh() {
      ended = false;
      clearTimeout(timer);
      timer = undefined;
      lost.delete(name);
      render();
    },
    signedOut() {
      clearTimeout(timer);
      ended = true;
      const bar = find("#stale", HTMLElement);
      const link = make("a", { href: location.pathname + location.search, text: t("sign_in") });
      bar.replaceChildren(t("signed_out_bar"), " ", link);
      bar.hidden = false;
    },
    /** @param {number} since */
    lost(since) {
      timer ??= setTimeout(() => {
        lost.set(name, since);
        render();
      }, PATIENCE_MS);
    },
  };
}
