"""The slot search against a brute force that tries every start on the grid."""

import time
from datetime import UTC, datetime, timedelta
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reservations.core.period import Period, merged
from reservations.core.slots import Candidate, SlotRequest, at, earliest, earliest_until

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
GRID = timedelta(minutes=5)
STEP = timedelta(minutes=1)
HORIZON = NOON + timedelta(hours=2)


def candidates(*hosts: str) -> tuple[Candidate, ...]:
    return tuple(Candidate(f"gpu{number}", host) for number, host in enumerate(hosts))


def request(*hosts: str, count: int = 1, minutes: int = 30, same_host: bool = True) -> SlotRequest:
    return SlotRequest(
        candidates(*hosts), count, timedelta(minutes=minutes), same_host=same_host, grid=GRID
    )


def minutes(start: int, end: int) -> Period:
    return Period(NOON + start * STEP, NOON + end * STEP)


@st.composite
def cases(draw):
    hosts = draw(st.lists(st.sampled_from("ab"), min_size=1, max_size=5))
    wanted = request(
        *hosts,
        count=draw(st.integers(1, 3)),
        minutes=5 * draw(st.integers(1, 8)),
        same_host=draw(st.booleans()),
    )
    spans = st.tuples(st.integers(-20, 115), st.integers(1, 40))
    busy = {
        one.device: [
            minutes(start, start + length) for start, length in draw(st.lists(spans, max_size=5))
        ]
        for one in wanted.candidates
    }
    after = NOON + draw(st.integers(0, 30)) * STEP
    return busy, wanted, after


def is_free(busy, device, period):
    return not any(one.overlaps(period) for one in busy.get(device, ()))


def groups(wanted, free):
    """Every set of devices that would do."""
    for chosen in combinations(free, wanted.count):
        if not wanted.same_host or len({one.host for one in chosen}) == 1:
            yield chosen


def slack(busy, device, period, after):
    """The free time of the device around the period, beyond the period itself."""
    start, end = after, HORIZON
    for one in merged(busy.get(device, ())):
        if one.end <= period.start:
            start = max(start, one.end)
        elif one.start >= period.end:
            end = min(end, one.start)
    return end - start - period.duration


def brute_force(busy, wanted, after):
    """The first start on the grid at which some set of devices is free, and the least total slack."""
    start = NOON
    while start + wanted.duration <= HORIZON:
        period = Period(start, start + wanted.duration)
        free = [one for one in wanted.candidates if is_free(busy, one.device, period)]
        fits = [
            sum((slack(busy, one.device, period, after) for one in chosen), timedelta())
            for chosen in groups(wanted, free)
        ]
        if fits and start >= after:
            return period, min(fits)
        start += GRID
    return None


@settings(max_examples=2_000, deadline=None)
@given(cases())
def test_the_earliest_slot_is_the_one_that_brute_force_finds(case):
    busy, wanted, after = case
    expected = brute_force(busy, wanted, after)
    found = earliest(busy, wanted, after=after, horizon=HORIZON)
    if expected is None:
        assert found == []
        return
    period, least = expected
    assert found[0].period == period
    assert sum((slack(busy, one, period, after) for one in found[0].devices), timedelta()) == least


@settings(max_examples=400, deadline=None)
@given(cases())
def test_every_slot_offered_is_free_on_the_grid_and_on_one_host_if_asked(case):
    busy, wanted, after = case
    hosts = {one.device: one.host for one in wanted.candidates}
    found = earliest(busy, wanted, after=after, horizon=HORIZON, limit=20)
    assert [one.period.start for one in found] == sorted({one.period.start for one in found})
    for slot in found:
        assert slot.period.start >= after
        assert slot.period.end <= HORIZON
        assert (slot.period.start - NOON) % GRID == timedelta(0)
        assert len(set(slot.devices)) == wanted.count
        assert all(is_free(busy, device, slot.period) for device in slot.devices)
        assert not wanted.same_host or len({hosts[device] for device in slot.devices}) == 1


@settings(max_examples=400, deadline=None)
@given(cases())
def test_at_a_given_start_it_finds_devices_exactly_when_enough_are_free(case):
    busy, wanted, after = case
    period = Period(after, after + wanted.duration)
    free = [one for one in wanted.candidates if is_free(busy, one.device, period)]
    slot = at(busy, wanted, start=after, after=NOON, horizon=HORIZON)
    assert (slot is not None) == any(groups(wanted, free))
    assert slot is None or all(is_free(busy, device, period) for device in slot.devices)


@settings(max_examples=400, deadline=None)
@given(cases())
def test_until_a_given_end_it_finds_the_longest_slot(case):
    busy, wanted, after = case
    end = HORIZON
    starts = [start for step in range(24) if (start := NOON + step * GRID) >= after]
    fitting = [
        start
        for start in starts
        if any(
            groups(
                wanted,
                [one for one in wanted.candidates if is_free(busy, one.device, Period(start, end))],
            )
        )
    ]
    slot = earliest_until(busy, wanted, after=after, end=end)
    assert (slot.period.start if slot else None) == (min(fitting) if fitting else None)
    if slot:
        assert slot.period.end == end
        assert all(is_free(busy, device, slot.period) for device in slot.devices)


def test_the_smallest_gap_that_fits_is_used_up_first():
    busy = {"gpu0": [minutes(60, 120)], "gpu1": [minutes(30, 60)]}
    slot = earliest(busy, request("a", "a", "a"), after=NOON, horizon=HORIZON)[0]
    assert slot.devices == ("gpu1",)


def test_of_hosts_that_fit_alike_the_one_with_fewest_free_devices_is_taken():
    wanted = request("big", "big", "big", "big", "small", "small", count=2)
    slot = earliest({}, wanted, after=NOON, horizon=HORIZON)[0]
    assert slot.devices == ("gpu4", "gpu5")


def test_a_slot_may_begin_in_the_instant_in_which_another_ends():
    busy = {"gpu0": [minutes(0, 30)]}
    slot = earliest(busy, request("a"), after=NOON, horizon=HORIZON)[0]
    assert slot.period.start == NOON + timedelta(minutes=30)


def test_starts_round_up_to_the_grid():
    busy = {"gpu0": [minutes(0, 31)]}
    slot = earliest(busy, request("a"), after=NOON, horizon=HORIZON)[0]
    assert slot.period.start == NOON + timedelta(minutes=35)


@pytest.mark.parametrize("same_host", [True, False])
def test_a_full_fleet_is_searched_in_less_than_three_seconds(same_host):
    hosts = [f"host{number // 8}" for number in range(1_000)]
    busy = {
        f"gpu{number}": [minutes(start, start + 55) for start in range(number % 7, 6_000, 60)]
        for number in range(1_000)
    }
    wanted = request(*hosts, count=4, minutes=60, same_host=same_host)
    began = time.perf_counter()
    found = earliest(busy, wanted, after=NOON, horizon=NOON + timedelta(days=5), limit=3)
    assert time.perf_counter() - began < 3
    assert found[0].period.start >= NOON + timedelta(minutes=5_900)
