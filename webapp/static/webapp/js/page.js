// What every page knows: who looks, in which zone and language, and the texts.

import { readJson } from "./dom.js";
import { Words } from "./zoned.js";

/** @typedef {{ reason: string, since: string, until: string }} Hold */

/**
 * @typedef {object} Config
 * @property {{ id: number, username: string, name: string, operator: boolean }} me
 * @property {string} zone IANA name
 * @property {string} locale
 * @property {number} grid_s
 * @property {Record<string, string>} [silent_hosts] since when each silent host is silent
 * @property {Record<string, Hold>} [holds] by host
 * @property {string} now RFC 3339, the server's clock when the page was made
 * @property {Record<string, string>} strings
 */

/** @type {Config} */
export const config = readJson("config");

export const words = new Words(config.locale, config.zone);

const skew = Date.parse(config.now) - Date.now();

/** The server's present, in ms: a wrong clock here must not shift the now line. */
export function now() {
  return Date.now() + skew;
}

/**
 * A text in the person's language, its {places} filled in.
 * @param {string} key
 * @param {Record<string, string | number>} [values]
 */
export function t(key, values = {}) {
  const text = config.strings[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (place, name) => String(values[name] ?? place));
}
