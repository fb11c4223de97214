import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";

const {
  dayOf,
  durationText,
  HOUR,
  instantsOf,
  isDay,
  MINUTE,
  offsetOf,
  startOfDay,
  startOfHour,
  wallOf,
  Words,
  zoneName,
} = await import("../../webapp/static/webapp/js/zoned.js");

const utc = (/** @type {string} */ text) => Date.parse(`${text}Z`);

test("a wall time in the hour that the zone skips does not exist", () => {
  assert.deepEqual(instantsOf("2027-03-28T02:30", "Europe/Berlin"), []);
  assert.deepEqual(instantsOf("2027-03-14T02:30", "America/New_York"), []);
  assert.deepEqual(instantsOf("2027-10-03T02:15", "Australia/Lord_Howe"), []);
});

test("a wall time in the repeated hour exists twice, the earlier first", () => {
  assert.deepEqual(instantsOf("2027-10-31T02:30", "Europe/Berlin"), [
    utc("2027-10-31T00:30"),
    utc("2027-10-31T01:30"),
  ]);
  assert.deepEqual(instantsOf("2027-11-07T01:30", "America/New_York"), [
    utc("2027-11-07T05:30"),
    utc("2027-11-07T06:30"),
  ]);
  assert.deepEqual(instantsOf("2027-04-04T01:45", "Australia/Lord_Howe"), [
    utc("2027-04-03T14:45"),
    utc("2027-04-03T15:15"),
  ]);
});

test("every other wall time exists once and reads back as itself", () => {
  for (const zone of ["Asia/Kolkata", "Asia/Shanghai", "Europe/Berlin", "UTC"]) {
    const [at, ...more] = instantsOf("2027-06-01T09:15", zone);
    assert.deepEqual(more, []);
    assert.equal(wallOf(at, zone), "2027-06-01T09:15");
  }
});

test("days have the length that the zone gives them", () => {
  const length = (
    /** @type {string} */ day,
    /** @type {string} */ next,
    /** @type {string} */ zone,
  ) => (startOfDay(next, zone) - startOfDay(day, zone)) / HOUR;
  assert.equal(length("2027-03-28", "2027-03-29", "Europe/Berlin"), 23);
  assert.equal(length("2027-10-31", "2027-11-01", "Europe/Berlin"), 25);
  assert.equal(length("2027-03-14", "2027-03-15", "America/New_York"), 23);
  assert.equal(length("2027-11-07", "2027-11-08", "America/New_York"), 25);
  assert.equal(length("2027-10-03", "2027-10-04", "Australia/Lord_Howe"), 23.5);
  assert.equal(length("2027-04-04", "2027-04-05", "Australia/Lord_Howe"), 24.5);
  assert.equal(length("2027-06-01", "2027-06-02", "Asia/Kolkata"), 24);
});

test("an instant belongs to the day of the zone, not of the browser", () => {
  assert.equal(dayOf(utc("2027-03-01T20:00"), "Asia/Kolkata"), "2027-03-02");
  assert.equal(dayOf(utc("2027-03-01T03:00"), "America/New_York"), "2027-02-28");
});

test("offsets are told with their half hours", () => {
  assert.equal(offsetOf(utc("2027-06-01T00:00"), "Asia/Kolkata"), "UTC+5:30");
  assert.equal(offsetOf(utc("2027-06-01T00:00"), "America/New_York"), "UTC−4");
  assert.equal(offsetOf(utc("2027-06-01T00:00"), "UTC"), "UTC");
});

test("a time that the clock shows twice is told with its offset", () => {
  const words = new Words("en-GB", "Europe/Berlin");
  assert.equal(words.time(utc("2027-10-31T00:30")), "02:30 (UTC+2)");
  assert.equal(words.time(utc("2027-10-31T01:30")), "02:30 (UTC+1)");
  assert.equal(words.time(utc("2027-10-31T02:30")), "03:30");
});

test("a span names its second day only when it has one", () => {
  const words = new Words("en-GB", "UTC");
  assert.equal(
    words.span(utc("2027-03-01T14:00"), utc("2027-03-01T18:00")).replaceAll(",", ""),
    "Mon 1 Mar 14:00 – 18:00",
  );
  assert.equal(
    words.span(utc("2027-03-01T22:00"), utc("2027-03-02T02:00")).replaceAll(",", ""),
    "Mon 1 Mar 22:00 – Tue 2 Mar 02:00",
  );
});

test("a zone is named with its offset, unless that says the same", () => {
  assert.equal(zoneName("Asia/Shanghai", Date.parse("2026-12-01T00:00Z")), "Asia/Shanghai (UTC+8)");
  assert.equal(zoneName("UTC", 0), "UTC");
});

test("the full hour is that of the wall clock", () => {
  const at = Date.parse("2027-03-01T10:40Z");
  assert.equal(startOfHour(at, "Asia/Kolkata"), Date.parse("2027-03-01T10:30Z"));
  assert.equal(startOfHour(at, "UTC"), Date.parse("2027-03-01T10:00Z"));
});

test("only days of the calendar are days", () => {
  assert.deepEqual(["2027-02-28", "2027-02-29", "2027-2-1", "soon"].map(isDay), [
    true,
    false,
    false,
    false,
  ]);
});

test("durations count elapsed time", () => {
  assert.equal(durationText(4 * HOUR), "4 h");
  assert.equal(durationText(90 * MINUTE), "1 h 30 min");
  assert.equal(durationText(51 * HOUR), "2 d 3 h");
  assert.equal(durationText(0), "0 min");
});
