// A WebSocket that comes back. No frame for 20 s means dead, whatever readyState says; after every
// return, and when the page is looked at again, the owner is told to fetch what it may have missed.

// The server's word for "sign in first" (webapp/live/base.py); trying again at once would not help.
const SIGNED_OUT = 4401;
const SILENCE_MS = 20_000;
const LOOK_MS = 2_000;
const BACK_OFF_MS = [500, 1_000, 2_000, 4_000, 8_000, 15_000, 30_000];

/**
 * @typedef {object} Handlers
 * @property {(message: any) => void} onMessage anything but pings
 * @property {() => void} onOpen connected, also after a break: fetch now
 * @property {() => void} onSignedOut the session has ended
 * @property {(since: number) => void} onLost no connection; `since` is when the last frame came, in ms
 */

export class LiveSocket {
  /** @param {string} path @param {Handlers} handlers */
  constructor(path, handlers) {
    this.path = path;
    this.handlers = handlers;
    this.failures = 0;
    this.lastFrame = Date.now();
    /** @type {WebSocket | undefined} */
    this.socket = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.retry = undefined;
    setInterval(() => this.watch(), LOOK_MS);
    document.addEventListener("visibilitychange", () => this.wake());
    addEventListener("online", () => this.wake());
    addEventListener("pageshow", () => this.wake());
    this.open();
  }

  open() {
    clearTimeout(this.retry);
    this.drop();
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const socket = new WebSocket(`${scheme}://${location.host}${this.path}`);
    this.socket = socket;
    this.lastTry = Date.now();
    socket.onopen = () => {
      this.failures = 0;
      this.lastFrame = Date.now();
      this.handlers.onOpen();
    };
    socket.onmessage = (event) => this.receive(event);
    socket.onclose = ({ code }) => (code === SIGNED_OUT ? this.signedOut() : this.lost());
  }

  /** Forget the present connection, without hearing of its end. */
  drop() {
    if (!this.socket) return;
    this.socket.onopen = this.socket.onmessage = this.socket.onclose = null;
    this.socket.close();
    this.socket = undefined;
  }

  /** @param {MessageEvent<string>} event */
  receive(event) {
    this.lastFrame = Date.now();
    const message = JSON.parse(event.data);
    if (message.type !== "ping") this.handlers.onMessage(message);
  }

  lost() {
    this.drop();
    this.handlers.onLost(this.lastFrame);
    const base = BACK_OFF_MS[Math.min(this.failures, BACK_OFF_MS.length - 1)];
    this.failures += 1;
    clearTimeout(this.retry);
    // Spread, so that a restarted server is not met by everybody at once.
    this.retry = setTimeout(() => this.open(), base * (0.5 + Math.random()));
  }

  /** Whoever comes back from signing in elsewhere looks at the page again: that wakes it. */
  signedOut() {
    this.drop();
    this.handlers.onSignedOut();
  }

  watch() {
    const silent = Date.now() - Math.max(this.lastFrame, this.lastTry ?? 0) > SILENCE_MS;
    if (this.socket && silent) this.lost();
  }

  wake() {
    if (document.visibilityState !== "visible") return;
    const quiet = Date.now() - this.lastFrame > SILENCE_MS / 2;
    if (!this.socket || quiet) this.open();
    else this.handlers.onOpen();
  }
}
