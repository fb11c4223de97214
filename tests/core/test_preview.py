"""Whom a host would stop if it enforced from now on: the agent's own decisions, asked ahead of time."""

import time
from datetime import timedelta

import pytest

from reservations.core.enforcement import Holder, HostGrant
from reservations.core.preview import foresee
from reservations.core.wire import HostSettings
from tests.build import NOON

HOUR = timedelta(hours=1)
GPU, OTHER = "GPU-a", "GPU-b"
ALICE, BOB = 1001, 1002


def holder(uid, pid=None, *, hours=5.0, **fields):
    started = NOON - timedelta(hours=hours)
    return Holder(pid=pid or uid + 1000, uid=uid, uids=(uid, uid), started=started, **fields)


def grant(uid, start, hours=1.0, *, booking=1, device=GPU):
    begins = NOON + timedelta(hours=start)
    ends = begins + timedelta(hours=hours)
    return HostGrant(
        booking=booking, device=device, uid=uid, unix_name=f"u{uid}", start=begins, end=ends
    )


def foreseen(grants=(), holders=None, **settings):
    known = HostSettings(managed=(GPU, OTHER), **settings)
    return foresee(grants, holders or {GPU: [holder(BOB)]}, settings=known, now=NOON)


def only(*args, **settings):
    (stop,) = foreseen(*args, **settings).stops
    return stop


def test_an_unbooked_job_may_stay_until_adoption_is_over():
    stop = only()
    assert (stop.party.uid, stop.pids, stop.since) == (BOB, (BOB + 1000,), NOON - 5 * HOUR)
    assert (stop.at, stop.why, stop.booking) == (NOON + 72 * HOUR, "time_up", None)


def test_it_is_stopped_when_somebody_elses_booking_begins():
    stop = only([grant(ALICE, 3, booking=7)])
    assert (stop.at, stop.why, stop.booking) == (NOON + 3 * HOUR, "booked", 7)


def test_on_a_device_that_somebody_else_has_booked_now_it_has_the_intruders_grace():
    stop = only([grant(ALICE, -1, 4, booking=7)], intruder_grace_s=90)
    assert (stop.at, stop.why) == (NOON + timedelta(seconds=90), "booked")


def test_ones_own_booking_is_no_reason_until_it_ends():
    stop = only([grant(BOB, -1, 4, booking=5)])
    assert (stop.at, stop.why, stop.booking) == (NOON + 3 * HOUR, "ended", 5)


def test_an_end_from_before_the_switch_is_no_reason_either():
    stop = only([grant(BOB, -3, 2, booking=5)])
    assert (stop.at, stop.why) == (NOON + 72 * HOUR, "time_up")


def test_walk_up_use_is_stopped_by_a_booking_alone():
    settings = {"unbooked_use": "allow"}
    assert foreseen(**settings).stops == ()
    assert only([grant(ALICE, 3)], **settings).at == NOON + 3 * HOUR


def test_exempt_and_protected_people_and_those_who_use_nothing_are_not_named():
    spared = [holder(BOB), holder(ALICE, protected="the display server"), holder(1003, uses=False)]
    assert foreseen((), {GPU: spared}, exempt_uids=(BOB,)).stops == ()


def test_a_device_that_berth_does_not_manage_is_left_out():
    assert foreseen((), {"GPU-slurm": [holder(BOB)]}).stops == ()


def test_a_container_of_nobody_is_reported_and_not_stopped_unless_the_site_says_so():
    inside = {GPU: [holder(BOB, container="c0ffee")]}
    needed = [grant(ALICE, 1)]
    assert all(stop.at is None for stop in foreseen(needed, inside).stops)
    stopped = only(needed, inside, unattributed_containers="stop")
    assert (stopped.at, stopped.party.container) == (NOON + HOUR, "c0ffee")


def test_twelve_jobs_of_nine_people_are_all_named_and_nobody_is_stopped_now():
    holders = {f"GPU-{n}": [holder(2001 + n % 9, pid=5000 + n)] for n in range(12)}
    settings = HostSettings(managed=tuple(holders))
    booked = [grant(ALICE, 2, device="GPU-4", booking=9)]
    found = foresee(booked, holders, settings=settings, now=NOON)
    assert {stop.party.uid for stop in found.stops} == set(range(2001, 2010))
    assert {stop.device for stop in found.stops} == set(holders)
    soon = [stop for stop in found.stops if stop.at and stop.at < NOON + 72 * HOUR]
    assert [(stop.device, stop.at) for stop in soon] == [("GPU-4", NOON + 2 * HOUR)]


def test_it_says_from_when_the_kill_budget_would_hold_fire():
    holders = {f"GPU-{n}": [holder(2001 + n)] for n in range(9)}
    settings = HostSettings(managed=tuple(holders), kill_budget=8)
    found = foresee([], holders, settings=settings, now=NOON)
    assert found.fire_held_at == NOON + 72 * HOUR
    assert all(stop.at is None for stop in found.stops)
    assert foresee([], dict(list(holders.items())[:8]), settings=settings, now=NOON).stops[0].at


@pytest.mark.parametrize("mode", ["observe", "warn", "enforce"])
def test_the_mode_and_a_hold_of_today_do_not_matter(mode):
    assert only(mode=mode).at == NOON + 72 * HOUR


def test_those_who_wait_because_they_are_too_many_count_on_every_device():
    holders = {GPU: [holder(1), holder(2)], OTHER: [holder(3)]}
    grants = [grant(ALICE, 1, hours=10), grant(ALICE, 2, hours=9, booking=2, device=OTHER)]
    found = foreseen(grants, holders, kill_budget=1)
    assert found.fire_held_at == NOON + HOUR
    assert [stop.at for stop in found.stops] == [None, None, None]


def test_once_few_enough_are_left_those_on_other_devices_are_stopped_too():
    holders = {GPU: [holder(1), holder(2)], OTHER: [holder(3)]}
    grants = [
        grant(ALICE, 1, hours=1),
        grant(2, 2, hours=1, booking=2),
        grant(ALICE, 1, hours=9, booking=3, device=OTHER),
    ]
    found = foreseen(grants, holders, kill_budget=2)
    assert found.fire_held_at == NOON + HOUR
    assert {(stop.party.uid, stop.at) for stop in found.stops if stop.at == NOON + 2 * HOUR} == {
        (1, NOON + 2 * HOUR),
        (3, NOON + 2 * HOUR),
    }


@pytest.mark.parametrize("kill_budget", [8, 10_000])
def test_a_crowded_host_is_foreseen_while_somebody_waits_for_the_page(kill_budget):
    devices = [f"GPU-{number}" for number in range(256)]
    holders = {
        device: [holder(2_000 + number * 8 + one, hours=1) for one in range(8)]
        for number, device in enumerate(devices)
    }
    grants = [
        grant(ALICE + number % 100, 1 + 5 * turn + number % 5, hours=3, booking=turn, device=device)
        for number, device in enumerate(devices)
        for turn in range(10)
    ]
    began = time.monotonic()
    found = foresee(
        grants,
        holders,
        settings=HostSettings(managed=tuple(devices), kill_budget=kill_budget),
        now=NOON,
    )
    assert len(found.stops) == 2_048
    assert (found.fire_held_at is not None) == (kill_budget == 8)
    # 0.5 to 1 s on a quiet machine. Looking at all devices again each time takes minutes.
    assert time.monotonic() - began < 10
