import assert from "node:assert/strict";
import { test } from "node:test";

const { isGone, Store } = await import("../../webapp/static/webapp/js/store.js");

/** @typedef {import("../../webapp/static/webapp/js/store.js").Row} Row */

/** @param {Partial<Row>} fields @returns {Row} */
const row = (fields = {}) => ({
  id: 1,
  revision: 1,
  state: "confirmed",
  kind: "normal",
  start: "2027-03-01T10:00:00Z",
  end: "2027-03-01T11:00:00Z",
  devices: ["GPU-1"],
  owner: { username: "alice", name: "Alice" },
  people: [],
  team: null,
  pinned: true,
  purpose: "",
  ...fields,
});
const at = (/** @type {string} */ clock) => Date.parse(`2027-03-01T${clock}:00Z`);
const day = { from: at("00:00"), to: at("23:59") };

test("a newer revision wins, an older one is ignored", () => {
  const store = new Store();
  store.upsert(row({ revision: 2, purpose: "new" }));
  assert.equal(store.upsert(row({ revision: 1, purpose: "old" })), false);
  assert.equal(store.get(1)?.purpose, "new");
  assert.equal(store.upsert(row({ revision: 3, purpose: "newest" })), true);
  assert.equal(store.get(1)?.purpose, "newest");
});

test("of one revision the row that came last counts: it tells what its reader may see now", () => {
  const store = new Store();
  store.upsert(row());
  store.upsert(row({ owner: null }));
  assert.equal(store.get(1)?.owner, null);
});

test("a newer masked row wins over an older full one", () => {
  const store = new Store();
  store.upsert(row());
  store.upsert(row({ revision: 2, owner: null }));
  assert.equal(store.get(1)?.owner, null);
});

test("a cancelled booking is not drawn and an older event cannot bring it back", () => {
  const store = new Store();
  store.upsert(row({ revision: 2, state: "cancelled" }));
  store.upsert(row({ revision: 1 }));
  assert.deepEqual(store.bookings(), []);
  assert.ok(isGone(row({ state: "rejected" })));
});

test("a fetch forgets what the server no longer has in its range, and only that", () => {
  const store = new Store();
  store.upsert(row({ id: 1 }));
  store.upsert(row({ id: 2, start: "2027-03-05T10:00:00Z", end: "2027-03-05T11:00:00Z" }));
  store.absorb([row({ id: 3 })], { ...day, mark: store.mark() });
  assert.deepEqual(
    store.bookings().map((booking) => booking.id),
    [3, 2],
  );
});

test("an event that arrives while a fetch is under way survives its answer", () => {
  const store = new Store();
  const mark = store.mark();
  store.upsert(row({ id: 7 }));
  store.absorb([], { ...day, mark });
  assert.equal(store.get(7)?.id, 7);
});

test("a fetch and the events after it equal a fresh fetch, in any order of arrival", () => {
  const first = [row({ id: 1 }), row({ id: 2 })];
  const events = [
    row({ id: 1, revision: 2, end: "2027-03-01T12:00:00Z" }),
    row({ id: 2, revision: 2, state: "cancelled" }),
    row({ id: 3 }),
  ];
  const fresh = new Store();
  fresh.absorb([events[0], events[2]], { ...day, mark: fresh.mark() });
  for (const order of [events, [...events].reverse(), [events[1], events[0], events[2]]]) {
    const store = new Store();
    const mark = store.mark();
    store.upsert(order[0]);
    store.absorb(first, { ...day, mark });
    for (const event of order) store.upsert(event);
    assert.deepEqual(store.bookings(), fresh.bookings());
  }
});

test("bookings that only touch do not block", () => {
  const store = new Store();
  store.upsert(row());
  const wish = { devices: ["GPU-1"], from: at("11:00"), to: at("12:00") };
  assert.equal(store.blocker(wish), undefined);
  assert.equal(store.blocker({ ...wish, from: at("10:59") })?.id, 1);
  assert.equal(store.blocker({ ...wish, from: at("10:30"), except: 1 }), undefined);
  assert.equal(store.blocker({ ...wish, from: at("10:30"), devices: ["GPU-2"] }), undefined);
});

test("a booking that waits for approval does not hold its devices", () => {
  const store = new Store();
  store.upsert(row({ state: "pending" }));
  assert.equal(
    store.blocker({ devices: ["GPU-1"], from: at("10:00"), to: at("11:00") }),
    undefined,
  );
});
