import assert from "node:assert/strict";
import { test } from "node:test";

const { pushed, runs } = await import("../../webapp/static/webapp/js/spark.js");

test("a ring keeps ten minutes and replaces a reading of the same second", () => {
  const ring = pushed(
    [
      [100, 1],
      [400, 2],
      [701, 3],
    ],
    [701, 4],
  );
  assert.deepEqual(ring, [
    [400, 2],
    [701, 4],
  ]);
});

test("what could not be read is a gap, not a zero", () => {
  assert.deepEqual(
    runs([
      [10, 5],
      [20, 6],
      [30, null],
      [100, 7],
    ]),
    [
      [
        [10, 5],
        [20, 6],
      ],
      [[100, 7]],
    ],
  );
  assert.deepEqual(runs([]), []);
});
