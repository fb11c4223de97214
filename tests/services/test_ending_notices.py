"""Warnings before the end of a booking."""

import pytest

from reservations.core.endings import step_due
from reservations.models import Notice
from reservations.services.ending_notices import write_ending_notices
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, SECOND


@pytest.mark.parametrize(
    ("length", "left", "due"),
    [
        (HOUR, 15 * MINUTE + SECOND, None),
        (HOUR, 15 * MINUTE, 15 * MINUTE),
        (HOUR, 5 * MINUTE + SECOND, 15 * MINUTE),
        (HOUR, 5 * MINUTE, 5 * MINUTE),
        (HOUR, 20 * SECOND, MINUTE),
        (HOUR, 0 * SECOND, MINUTE),
        # a short booking is not warned of an end that lies behind its start
        (10 * MINUTE, 10 * MINUTE, None),
        (10 * MINUTE, 4 * MINUTE, 5 * MINUTE),
        # the early steps are for bookings of more than a day
        (24 * HOUR, 2 * HOUR, None),
        (25 * HOUR, 24 * HOUR, 24 * HOUR),
        (25 * HOUR, 2 * HOUR, 2 * HOUR),
        (25 * HOUR, 14 * MINUTE, 15 * MINUTE),
    ],
)
def test_which_step_is_due(length, left, due):
    assert step_due(NOON, NOON + length, now=NOON + length - left) == due


@pytest.fixture
def device(db):
    return build.device(build.host("gpu1"), index=0)


def texts(user=None):
    rows = Notice.objects.filter(kind="ending").order_by("id")
    return [notice.text for notice in (rows.filter(user=user) if user else rows)]


def test_each_step_is_told_once_in_the_persons_own_time(device):
    owner = build.user(time_zone="Asia/Shanghai")
    build.booking(device, owner=owner)
    for minute in range(40, 60):
        write_ending_notices(now=NOON + minute * MINUTE)
    assert texts() == [
        f"Your booking of Test 80GB · 0 on gpu1 ends at 21:00, in {left} min. "
        "Save your work, or extend the booking."
        for left in (15, 5, 1)
    ]


def test_an_end_on_another_day_is_told_with_its_day(device):
    build.booking(device, start=NOON, hours=30)
    write_ending_notices(now=NOON + 6 * HOUR)
    assert "ends at Tue 2 Mar, 18:00, in 24 h." in texts()[0]


def test_steps_missed_while_beat_was_down_are_not_told_late(device):
    build.booking(device)
    write_ending_notices(now=NOON + 57 * MINUTE)
    assert len(texts()) == 1
    assert "in 3 min" in texts()[0]


def test_an_extended_booking_is_warned_of_its_new_end(device):
    booking = build.booking(device)
    write_ending_notices(now=NOON + 50 * MINUTE)
    booking.end += HOUR
    booking.save()
    booking.allocations.update(end=booking.end)
    for minute in (51, 106):
        write_ending_notices(now=NOON + minute * MINUTE)
    assert [text.split(" ends at ")[1][:5] for text in texts()] == ["13:00", "14:00"]


def test_somebody_who_goes_on_is_not_warned_and_others_are(device):
    """No mail when the same person has the device next."""
    owner, guest = build.user(), build.user()
    build.booking(device, owner=owner).people.add(guest)
    build.booking(device, owner=owner, start=NOON + HOUR)
    write_ending_notices(now=NOON + 50 * MINUTE)
    assert (texts(owner), len(texts(guest))) == ([], 1)


def test_only_the_devices_that_really_end_are_named(device):
    other = build.device(device.host, index=1)
    booking = build.booking(device, other)
    build.booking(device, owner=booking.owner, start=NOON + HOUR)
    write_ending_notices(now=NOON + 50 * MINUTE)
    assert "booking of Test 80GB · 1 on gpu1 ends" in texts()[0]


def test_a_gap_between_two_bookings_is_an_end(device):
    booking = build.booking(device)
    build.booking(device, owner=booking.owner, start=NOON + HOUR + 5 * MINUTE)
    write_ending_notices(now=NOON + 50 * MINUTE)
    assert len(texts()) == 1


def test_released_cancelled_and_maintenance_bookings_warn_nobody(device):
    build.booking(device, end=NOON + 49 * MINUTE)
    build.booking(build.device(), state="cancelled")
    build.booking(build.device(), kind="maintenance")
    assert write_ending_notices(now=NOON + 50 * MINUTE) == 0


def test_two_beats_are_harmless(device):
    build.booking(device)
    now = NOON + 50 * MINUTE
    assert [write_ending_notices(now=now) for _ in range(2)] == [1, 0]
    assert len(texts()) == 1
