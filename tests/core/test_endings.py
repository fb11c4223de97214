"""Which ends people are to be told of, seen from a host's own plan."""

from datetime import timedelta

import msgspec
import pytest

from reservations.core.endings import endings
from tests.core.stage import ALICE, BOB, GPU, at, every, grant

OTHER = "GPU-b"


def told(grants, *, start, stop, step_s=5):
    """What an agent that looks every few seconds tells: when, to whom and which step in minutes."""
    keys = set()
    lines = []
    for now in every(step_s, start, stop):
        for ending in endings(grants, now=now):
            if ending.key not in keys:
                keys.add(ending.key)
                lines.append((now, ending.uid, ending.step // timedelta(minutes=1)))
    return lines


def test_an_hour_is_told_15_5_and_1_minutes_before_its_end():
    assert told([grant(ALICE)], start=at(-60), stop=at(hours=2)) == [
        (at(minutes=45), ALICE, 15),
        (at(minutes=55), ALICE, 5),
        (at(minutes=59), ALICE, 1),
    ]


def test_more_than_a_day_is_also_told_a_day_and_two_hours_before():
    long = grant(ALICE, at(0), at(hours=30))
    steps = [step for _, _, step in told([long], start=at(-60), stop=at(hours=31), step_s=60)]
    assert steps == [24 * 60, 2 * 60, 15, 5, 1]


def test_an_extended_booking_is_told_of_its_new_end():
    short = grant(ALICE)
    longer = msgspec.structs.replace(short, end=at(hours=1, minutes=30))
    first, second = endings([short], now=at(minutes=50)), endings([longer], now=at(minutes=80))
    assert first[0].step == second[0].step
    assert first[0].key != second[0].key


def test_a_missed_step_is_not_made_up_for():
    (ending,) = endings([grant(ALICE)], now=at(minutes=57))
    assert ending.step == timedelta(minutes=5)


@pytest.mark.parametrize("booking", [1, 2])
def test_grants_of_one_person_that_touch_count_as_one(booking):
    """Also a next one so short that it would not be told of 15 minutes before by itself."""
    grants = [
        grant(ALICE, booking=1),
        grant(ALICE, at(hours=1), at(hours=1, minutes=10), booking=booking),
    ]
    assert told(grants, start=at(0), stop=at(hours=2)) == [
        (at(minutes=55), ALICE, 15),
        (at(minutes=65), ALICE, 5),
        (at(minutes=69), ALICE, 1),
    ]


def test_two_stretches_that_are_long_together_are_long():
    grants = [grant(ALICE, at(0), at(hours=20)), grant(ALICE, at(hours=20), at(hours=40))]
    assert [ending.step for ending in endings(grants, now=at(hours=38))] == [timedelta(hours=2)]


def test_somebody_elses_next_grant_does_not_continue_ones_own():
    grants = [grant(ALICE), grant(BOB, at(hours=1))]
    assert [ending.uid for ending in endings(grants, now=at(minutes=50))] == [ALICE]


def test_a_gap_is_an_end():
    grants = [grant(ALICE), grant(ALICE, at(hours=1, minutes=5))]
    assert [ending.end for ending in endings(grants, now=at(minutes=50))] == [at(hours=1)]


def test_devices_of_one_booking_are_told_of_together_without_those_that_go_on():
    grants = [grant(ALICE, booking=1, device=name) for name in (GPU, OTHER, "GPU-c")]
    grants.append(grant(ALICE, at(hours=1), booking=2, device="GPU-c"))
    (ending,) = endings(grants, now=at(minutes=50))
    assert ending.devices == (GPU, OTHER)


def test_each_person_of_a_booking_is_told():
    grants = [grant(ALICE, booking=1), grant(BOB, booking=1)]
    assert {ending.uid for ending in endings(grants, now=at(minutes=50))} == {ALICE, BOB}


def test_a_booking_that_is_kept_while_free_is_told_only_once_it_was_not_kept():
    kept = grant(ALICE, keep_if_free=True)
    assert told([kept], start=at(0), stop=at(hours=1)) == [
        (at(minutes=59, seconds=15), ALICE, 1),
    ]


def test_a_booking_that_cannot_be_kept_because_somebody_follows_is_told_in_good_time():
    grants = [grant(ALICE, keep_if_free=True), grant(BOB, at(hours=1, minutes=10))]
    assert [step for _, _, step in told(grants, start=at(0), stop=at(hours=1))] == [15, 5, 1]


def test_what_has_ended_or_not_begun_is_not_told():
    assert endings([grant(ALICE)], now=at(hours=1)) == []
    assert endings([grant(ALICE)], now=at(-1)) == []
