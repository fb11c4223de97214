import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";

const { between, drafted, editable, pulled } = await import(
  "../../webapp/static/webapp/js/gesture.js"
);

const at = (/** @type {string} */ clock) => Date.parse(`2027-03-01T${clock}Z`);
const grid = 15 * 60_000;
const now = at("12:07:30");

test("a drag to the left means the same as a drag to the right", () => {
  const right = drafted({ anchor: at("14:01"), at: at("16:02"), grid, now });
  const left = drafted({ anchor: at("16:02"), at: at("14:01"), grid, now });
  assert.deepEqual(right, { from: at("14:00"), to: at("16:00") });
  assert.deepEqual(left, right);
});

test("a drag that starts left of the now line starts now", () => {
  assert.deepEqual(drafted({ anchor: at("11:00"), at: at("13:00"), grid, now }), {
    from: now,
    to: at("13:00"),
  });
});

test("the past cannot be drawn", () => {
  assert.equal(drafted({ anchor: at("09:00"), at: at("11:00"), grid, now }), null);
});

test("a click draws one step", () => {
  assert.deepEqual(drafted({ anchor: at("14:05"), at: at("14:05"), grid, now }), {
    from: at("14:00"),
    to: at("14:15"),
  });
});

const span = { from: at("14:00"), to: at("16:00") };
const hour = 3_600_000;

test("moving keeps the duration and stays out of the past", () => {
  const moved = pulled(span, { grip: "move", delta: hour + 60_000, grid, now });
  assert.deepEqual(moved, { from: at("15:00"), to: at("17:00") });
  assert.deepEqual(pulled(span, { grip: "move", delta: -9 * hour, grid, now }), {
    from: at("12:15"),
    to: at("14:15"),
  });
});

test("an edge cannot cross the other one, nor the present", () => {
  assert.deepEqual(pulled(span, { grip: "end", delta: -9 * hour, grid, now }).to, at("14:15"));
  assert.deepEqual(pulled(span, { grip: "start", delta: 9 * hour, grid, now }).from, at("15:45"));
  const running = { from: at("10:00"), to: at("16:00") };
  assert.equal(pulled(running, { grip: "end", delta: -9 * hour, grid, now }).to, at("12:15"));
});

test("what may be changed depends on who looks and when", () => {
  const me = { username: "alice", operator: false };
  const booking = {
    ...{ id: 1, revision: 1, state: "confirmed", kind: "normal", start: "", end: "" },
    ...{ devices: [], people: [], team: null, pinned: true, purpose: "" },
    owner: { username: "alice", name: "Alice" },
    ...span,
  };
  assert.equal(editable(booking, me, now), "all");
  assert.equal(editable(booking, me, at("15:00")), "end");
  assert.equal(editable(booking, me, at("16:00")), "none");
  assert.equal(editable({ ...booking, state: "pending" }, me, now), "none");
  assert.equal(editable({ ...booking, owner: null }, me, now), "none");
  assert.equal(editable(booking, { username: "bob", operator: false }, now), "none");
  assert.equal(editable(booking, { username: "root", operator: true }, now), "all");
});

test("a rectangle takes the rows between its corners, in their order", () => {
  assert.deepEqual(between(["a", "b", "c", "d"], "c", "a"), ["a", "b", "c"]);
  assert.deepEqual(between(["a", "b", "c", "d"], "b", "b"), ["b"]);
});
