// Small helpers around the document. Texts only ever enter as text, never as markup.

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | boolean | undefined>} [attributes] "text" becomes the content
 * @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name === "text") element.textContent = String(value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

/**
 * The one element that must be there; a page without it is a mistake of ours.
 * @template {HTMLElement} Kind
 * @param {string} selector
 * @param {{ new (): Kind }} kind
 * @param {ParentNode} [within]
 * @returns {Kind}
 */
export function find(selector, kind, within = document) {
  const element = within.querySelector(selector);
  if (!(element instanceof kind)) throw new Error(`${selector} is missing from the page`);
  return element;
}

/** The content of a json_script element. @param {string} id */
export function readJson(id) {
  return JSON.parse(find(`#${id}`, HTMLElement).textContent ?? "null");
}

/** Where the pointer is, if it is over something that matches. @param {EventTarget | null} target @param {string} selector */
export function closest(target, selector) {
  const found = target instanceof Element ? target.closest(selector) : null;
  return found instanceof HTMLElement ? found : null;
}

/**
 * Runs `task` once no call came for `wait_ms`.
 * @param {() => void} task
 * @param {number} wait_ms
 */
export function debounced(task, wait_ms) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(task, wait_ms);
  };
}
