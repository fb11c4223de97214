import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";

const { Axis, labelStep, snap, snapUp } = await import("../../webapp/static/webapp/js/axis.js");
const { HOUR } = await import("../../webapp/static/webapp/js/zoned.js");

const utc = (/** @type {string} */ text) => Date.parse(`${text}Z`);
const labels = (/** @type {string} */ day, /** @type {string} */ zone) =>
  new Axis({ day, days: 1, zone }).ticks().map((tick) => tick.label);

test("a day in spring has 23 columns and no 02", () => {
  const shown = labels("2027-03-28", "Europe/Berlin");
  assert.equal(shown.length, 23);
  assert.deepEqual(shown.slice(0, 4), ["00", "01", "03", "04"]);
  assert.equal(labels("2027-03-14", "America/New_York").length, 23);
});

test("a day in autumn has 25 columns, the repeated hour with its offsets", () => {
  const shown = labels("2027-10-31", "Europe/Berlin");
  assert.equal(shown.length, 25);
  assert.deepEqual(shown.slice(1, 5), ["01", "02 +2", "02 +1", "03"]);
  const new_york = labels("2027-11-07", "America/New_York");
  assert.deepEqual(new_york.slice(0, 4), ["00", "01 −4", "01 −5", "02"]);
});

test("a clock that changes by half an hour keeps full hours on their instants", () => {
  const axis = new Axis({ day: "2027-04-04", days: 1, zone: "Australia/Lord_Howe" });
  assert.equal(axis.hours, 24.5);
  const [, one, two] = axis.ticks();
  assert.equal(two.at - one.at, 1.5 * HOUR);
});

test("columns are equally wide in absolute time, whatever the clock does", () => {
  const axis = new Axis({ day: "2027-10-31", days: 1, zone: "Europe/Berlin" });
  const gaps = axis.ticks().map((tick) => Math.round(axis.fraction(tick.at) * 25));
  assert.deepEqual(
    gaps,
    Array.from({ length: 25 }, (_, index) => index),
  );
});

test("place and instant are each other's inverse", () => {
  const axis = new Axis({ day: "2027-03-28", days: 3, zone: "Asia/Kolkata" });
  for (const at of [axis.start, utc("2027-03-28T23:17"), axis.end]) {
    assert.ok(Math.abs(axis.instant(axis.fraction(at)) - at) < 1);
  }
});

test("the axis is half-open", () => {
  const axis = new Axis({ day: "2027-03-01", days: 1, zone: "UTC" });
  assert.ok(axis.contains(axis.start));
  assert.ok(!axis.contains(axis.end));
  assert.ok(!axis.shows(axis.end, axis.end + HOUR));
  assert.ok(axis.shows(axis.end - 1, axis.end + HOUR));
});

test("a week around a clock change starts every day on its own midnight", () => {
  const axis = new Axis({ day: "2027-10-25", days: 7, zone: "Europe/Berlin" });
  assert.equal(axis.hours, 169);
  assert.deepEqual(
    axis.days.map((day) => day.start),
    [22, 22, 22, 22, 22, 22, 22].map((hour, index) => utc(`2027-10-${24 + index}T${hour}:00`)),
  );
});

test("labels keep their distance", () => {
  assert.equal(labelStep(50), 1);
  assert.equal(labelStep(16), 2);
  assert.equal(labelStep(7), 6);
  assert.equal(labelStep(1), 24);
});

test("snapping", () => {
  assert.equal(snap(8, 5), 10);
  assert.equal(snapUp(6, 5), 10);
});

test("an axis that begins with an hour shows 24 hours over two days", () => {
  const from = utc("2027-03-01T21:00");
  const axis = new Axis({ day: "2027-03-01", days: 1, zone: "UTC", from });
  assert.deepEqual([axis.start, axis.end], [from, from + 24 * HOUR]);
  assert.deepEqual(
    axis.days.map(({ day, start, end }) => [day, (end - start) / HOUR]),
    [
      ["2027-03-01", 3],
      ["2027-03-02", 21],
    ],
  );
  assert.deepEqual(
    axis
      .ticks()
      .slice(0, 5)
      .map((tick) => tick.label),
    ["21", "22", "23", "00", "01"],
  );
});

test("an axis over a clock change stays 24 hours long and tells the repeated hour", () => {
  const from = utc("2027-10-31T00:00");
  const axis = new Axis({ day: "2027-10-31", days: 1, zone: "Europe/Berlin", from });
  assert.equal(axis.hours, 24);
  assert.deepEqual(
    axis
      .ticks()
      .slice(0, 3)
      .map((tick) => tick.label),
    ["02 +2", "02 +1", "03"],
  );
});
