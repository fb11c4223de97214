// The manage pages: what the server wrote is fetched again now and then, and at once when somebody
// holds or resumes a host. Only what is marked as fresh is replaced: never a form under somebody's hand.

import "./asking.js";
import { LiveSocket } from "./socket.js";
import { showStale } from "./stale.js";

const EVERY_MS = 10_000;

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (!answer?.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of document.querySelectorAll("[data-fresh]")) {
    const fresh = page.getElementById(part.id);
    const busy = part.contains(document.activeElement);
    if (fresh && !busy && fresh.innerHTML !== part.innerHTML) part.replaceWith(fresh);
  }
}

setInterval(refresh, EVERY_MS);
document.addEventListener("visibilitychange", refresh);

const stale = showStale("calendar");
new LiveSocket("/ws/calendar/", {
  onOpen: stale.fresh,
  onLost: stale.lost,
  onSignedOut: stale.signedOut,
  onMessage: ({ type }) => {
    if (type === "hosts") refresh();
  },
});
