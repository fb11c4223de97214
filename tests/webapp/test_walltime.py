"""Wall-clock times: those that do not exist, those that come twice, and how instants are told."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp import walltime

BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
LORD_HOWE, KOLKATA = ZoneInfo("Australia/Lord_Howe"), ZoneInfo("Asia/Kolkata")


def wall(text):
    return datetime.fromisoformat(text)


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("2027-03-28T02:30", BERLIN),
        ("2027-03-14T02:00", NEW_YORK),
        ("2027-10-03T02:15", LORD_HOWE),
    ],
)
def test_a_time_that_the_clock_skips_does_not_exist(text, zone):
    assert walltime.instants_of(wall(text), zone) == []


@pytest.mark.parametrize(
    ("text", "zone", "instants"),
    [
        ("2027-10-31T02:30", BERLIN, ["2027-10-31T00:30", "2027-10-31T01:30"]),
        ("2027-11-07T01:30", NEW_YORK, ["2027-11-07T05:30", "2027-11-07T06:30"]),
        ("2027-04-04T01:45", LORD_HOWE, ["2027-04-03T14:45", "2027-04-03T15:15"]),
        ("2027-06-01T12:00", KOLKATA, ["2027-06-01T06:30"]),
    ],
)
def test_a_time_is_one_instant_or_two_with_the_earlier_first(text, zone, instants):
    assert walltime.instants_of(wall(text), zone) == [utc(one) for one in instants]


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)),  # noqa: DTZ001 -- UTC is set below
    st.sampled_from([BERLIN, NEW_YORK, LORD_HOWE, KOLKATA]),
)
def test_every_instant_is_among_those_that_its_wall_time_means(moment, zone):
    instant = moment.replace(tzinfo=UTC, microsecond=0)
    shown = instant.astimezone(zone).replace(tzinfo=None, fold=0)
    assert instant in walltime.instants_of(shown, zone)


def test_a_zone_is_named_with_its_offset_unless_that_says_the_same():
    moment = datetime(2026, 12, 1, tzinfo=UTC)
    assert walltime.zone_text(moment, ZoneInfo("Asia/Shanghai")) == "Asia/Shanghai (UTC+8)"
    assert walltime.zone_text(moment, ZoneInfo("UTC")) == "UTC"


def test_a_time_that_comes_twice_is_told_with_its_offset():
    assert walltime.time_text(utc("2027-10-31T00:30"), BERLIN) == "02:30 (UTC+2)"
    assert walltime.time_text(utc("2027-10-31T01:30"), BERLIN) == "02:30 (UTC+1)"
    assert walltime.time_text(utc("2027-10-31T03:00"), BERLIN) == "04:00"


def test_offsets_keep_their_half_hours():
    assert walltime.offset_text(utc("2027-06-01T00:00"), KOLKATA) == "UTC+5:30"
    assert walltime.offset_text(utc("2027-06-01T00:00"), NEW_YORK) == "UTC−4"
    assert walltime.offset_text(utc("2027-06-01T00:00"), ZoneInfo("UTC")) == "UTC"


def test_a_span_names_its_second_day_only_when_it_has_one():
    start = utc("2027-03-01T20:00")
    assert walltime.span_text(start, start + timedelta(hours=2), ZoneInfo("UTC")) == (
        "Mon 1 Mar 20:00 – 22:00"
    )
    assert walltime.span_text(start, start + timedelta(hours=6), ZoneInfo("UTC")) == (
        "Mon 1 Mar 20:00 – Tue 2 Mar 02:00"
    )


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(minutes=45), "45 min"),
        (timedelta(hours=4), "4 h"),
        (timedelta(hours=51), "2 d 3 h"),
        (timedelta(hours=4, minutes=30), "4 h 30 min"),
        (timedelta(0), "0 min"),
    ],
)
def test_durations(duration, text):
    assert walltime.duration_text(duration) == text
