// The only way to the REST interface: session and CSRF, JSON, problems as exceptions.

/** @import { Row } from "./store.js" */

/**
 * @typedef {object} Slot
 * @property {string[]} devices
 * @property {string} start
 * @property {string} end
 */

/**
 * @typedef {object} Blocker
 * @property {string} device
 * @property {string} start
 * @property {string} end
 * @property {string | null} [owner]
 */

/** @typedef {{ rule: string, text: string }} Objection */

/**
 * The body of a refusal (RFC 9457) with what Berth adds.
 * @typedef {object} Problem
 * @property {string} [code]
 * @property {string} [detail]
 * @property {Record<string, string[]>} [errors]
 * @property {Blocker[]} [blockers]
 * @property {Slot[]} [alternatives]
 * @property {Objection[]} [objections]
 * @property {Row} [booking] the current state, when ours was stale
 */

export class ApiProblem extends Error {
  /** @param {number} status 0 when no answer came @param {Problem} problem */
  constructor(status, problem) {
    super(problem.detail ?? "");
    this.status = status;
    this.code = problem.code ?? (status === 0 ? "offline" : "unknown");
    this.problem = problem;
  }
}

/** @param {string} name */
function cookie(name) {
  const pair = document.cookie.split("; ").find((one) => one.startsWith(`${name}=`));
  return pair ? decodeURIComponent(pair.slice(name.length + 1)) : "";
}

/** @param {Response} response */
async function bodyOf(response) {
  if (response.status === 204) return null;
  try {
    return await response.json();
  } catch {
    return {};
  }
}

/**
 * @param {string} method
 * @param {string} path below /api/v1/
 * @param {{ body?: unknown, key?: string, revision?: number, signal?: AbortSignal }} [options]
 * @returns {Promise<any>} the body of a 2xx answer
 * @throws {ApiProblem}
 */
export async function call(method, path, { body, key, revision, signal } = {}) {
  /** @type {Record<string, string>} */
  const headers = { Accept: "application/json" };
  if (method !== "GET") headers["X-CSRFToken"] = cookie("csrftoken");
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (key) headers["Idempotency-Key"] = key;
  if (revision !== undefined) headers["If-Match"] = `"${revision}"`;
  const response = await fetch(`/api/v1/${path}`, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
    credentials: "same-origin",
  }).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ApiProblem(0, {});
  });
  const answer = await bodyOf(response);
  if (!response.ok) throw new ApiProblem(response.status, answer ?? {});
  return answer;
}

/** @param {string} path @param {Record<string, string | number>} query */
export function get(path, query = {}) {
  const text = new URLSearchParams(
    Object.entries(query).map(([name, value]) => [name, String(value)]),
  );
  return call("GET", `${path}?${text}`);
}

/** @param {number} at */
export function iso(at) {
  return new Date(at).toISOString().replace(".000Z", "Z");
}
