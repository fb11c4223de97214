"""SIGUSR1 ten minutes before an end, for those who asked for it, and for nobody else."""

from dataclasses import replace

import msgspec
import pytest

from reservations.core.enforcement import EarlySignal, PlanState
from reservations.core.reconcile import next_edge
from reservations.core.wire import HostSettings
from tests.core.stage import ALICE, BOB, GPU, SETTINGS, Stage, at, every, grant

OTHER = "GPU-b"
BOTH = HostSettings(mode="enforce", managed=(GPU, OTHER))
DUE = at(minutes=50)


def asking(uid=ALICE, start=None, end=None, **fields):
    return grant(uid, start or at(0), end, early_signal=True, **fields)


def staged(*grants, settings=SETTINGS):
    stage = Stage(settings=settings, grants=list(grants))
    stage.tick(at(-5))
    stage.tick(at(0))
    return stage


def sent(stage):
    """When, on which device and to whom."""
    return [
        (when, action.device, action.pids)
        for when, action in stage.actions
        if isinstance(action, EarlySignal)
    ]


def test_it_is_sent_ten_minutes_before_the_end_once_and_told():
    stage = staged(asking(booking=7))
    job = stage.run(ALICE, at(60))
    told = stage.ticks(every(30, at(minutes=40), at(minutes=59, seconds=30)))
    assert sent(stage) == [(DUE, GPU, (job.pid,))]
    assert [(f.kind, f.booking, f.uid, f.pids) for f in told] == [
        ("early_signalled", 7, ALICE, (job.pid,))
    ]
    assert stage.alive(job)


def test_the_agent_wakes_for_it():
    stage = staged(asking(), grant(BOB, at(hours=2)))
    edges = {"grants": stage.grants, "ladder": stage.ladder, "settings": SETTINGS}
    assert next_edge(**edges, now=at(minutes=1)) == DUE
    assert next_edge(**edges, now=DUE) == at(hours=1)


def test_nobody_who_did_not_ask_gets_it():
    stage = staged(grant(ALICE))
    stage.run(ALICE, at(60))
    stage.ticks(every(60, at(minutes=40), at(minutes=59)))
    assert sent(stage) == []


def test_only_the_topmost_holders_get_it():
    stage = staged(asking())
    job = stage.run(ALICE, at(60))
    stage.run(ALICE, at(61), ancestors=(job.pid, 1))
    stage.tick(DUE)
    assert sent(stage) == [(DUE, GPU, (job.pid,))]


def test_a_job_on_two_devices_of_a_booking_hears_it_once():
    stage = staged(asking(booking=7), asking(booking=7, device=OTHER), settings=BOTH)
    first = stage.run(ALICE, at(60))
    stage.processes.append(replace(first, device=OTHER))
    worker = stage.run(ALICE, at(61), device=OTHER, ancestors=(first.pid,))
    single = stage.run(ALICE, at(62), device=OTHER)
    stage.ticks(every(60, DUE, at(minutes=59)))
    assert sent(stage) == [(DUE, GPU, (first.pid,)), (DUE, OTHER, (single.pid,))]
    assert stage.alive(worker)


def test_a_missed_instant_is_made_up_for_but_not_for_what_began_after_it():
    stage = staged(asking())
    job = stage.run(ALICE, at(60))
    stage.run(ALICE, at(minutes=55))
    stage.ticks([at(minutes=57), at(minutes=58)])
    assert sent(stage) == [(at(minutes=57), GPU, (job.pid,))]


def test_one_that_begins_after_it_was_due_knows_the_end():
    stage = staged(asking())
    stage.run(ALICE, at(minutes=51))
    stage.ticks(every(60, DUE, at(minutes=59)))
    assert sent(stage) == []


def test_an_end_that_moves_later_gets_its_own():
    stage = staged(asking())
    job = stage.run(ALICE, at(60))
    stage.tick(DUE)
    stage.grants = [asking(end=at(hours=2))]
    stage.ticks(every(60, at(minutes=51), at(minutes=119)))
    assert sent(stage) == [(DUE, GPU, (job.pid,)), (at(minutes=110), GPU, (job.pid,))]


def test_grants_of_one_person_that_touch_end_once_with_the_last():
    stage = staged(asking(booking=1), asking(start=at(hours=1), booking=2))
    job = stage.run(ALICE, at(60))
    stage.ticks(every(60, at(minutes=40), at(minutes=119)))
    assert sent(stage) == [(at(minutes=110), GPU, (job.pid,))]


def test_a_short_grant_that_continues_another_is_told_while_the_first_runs():
    stage = staged(
        grant(ALICE, booking=1), asking(start=at(hours=1), end=at(minutes=65), booking=2)
    )
    job = stage.run(ALICE, at(60))
    stage.ticks(every(60, at(minutes=40), at(minutes=64)))
    assert sent(stage) == [(at(minutes=55), GPU, (job.pid,))]


def test_somebody_else_who_follows_changes_nothing():
    stage = staged(asking(), asking(BOB, start=at(hours=1)))
    job = stage.run(ALICE, at(60))
    stage.tick(DUE)
    assert sent(stage) == [(DUE, GPU, (job.pid,))]


def test_a_grant_shorter_than_ten_minutes_has_no_such_instant():
    stage = staged(asking(end=at(minutes=9)))
    stage.run(ALICE, at(minutes=-5))
    stage.ticks(every(30, at(1), at(minutes=8)))
    assert sent(stage) == []


def test_a_grant_that_is_disputed_stops_nobody_early():
    stage = staged(grant(BOB, at(hours=-1), at(hours=2)), asking())
    stage.run(ALICE, at(60))
    stage.tick(DUE)
    assert sent(stage) == []


@pytest.mark.parametrize("mode", ["observe", "warn"])
def test_it_is_sent_where_the_host_enforces_only(mode):
    stage = staged(asking(), settings=msgspec.structs.replace(SETTINGS, mode=mode))
    stage.run(ALICE, at(60))
    stage.tick(DUE)
    assert sent(stage) == []


def test_a_device_that_is_not_managed_is_left_alone():
    stage = staged(asking(device=OTHER))
    stage.gates[OTHER] = None
    stage.run(ALICE, at(60), device=OTHER)
    stage.tick(DUE)
    assert sent(stage) == []


def test_protected_exempt_and_idle_holders_and_other_people_never_get_it():
    settings = msgspec.structs.replace(SETTINGS, exempt_uids=(BOB,))
    stage = staged(asking(), asking(BOB, booking=ALICE), settings=settings)
    stage.run(ALICE, at(60), protected="the agent's own tree")
    stage.run(ALICE, at(60), uses=False)
    stage.run(BOB, at(60))
    stage.run(0, at(60))
    stage.tick(DUE)
    assert sent(stage) == []


def test_doubt_sends_nothing_and_is_made_up_for():
    stage = staged(asking())
    job = stage.run(ALICE, at(60))
    stage.unreadable = True
    stage.tick(DUE)
    stage.unreadable = False
    stage.plan = PlanState(as_of=at(0), may_stop=False)
    stage.tick(at(minutes=51))
    assert sent(stage) == []
    stage.plan = None
    stage.tick(at(minutes=52))
    assert sent(stage) == [(at(minutes=52), GPU, (job.pid,))]


def test_what_was_told_is_forgotten_after_the_end():
    stage = staged(asking())
    stage.run(ALICE, at(60))
    stage.tick(DUE)
    assert len(stage.ladder.told) == 2
    stage.tick(at(hours=1))
    assert stage.ladder.told == frozenset()


def test_a_container_of_nobody_that_runs_under_its_uid_does_not_get_it():
    """A program that does not handle the signal is ended by it."""
    stage = staged(asking())
    job = stage.run(ALICE, at(60))
    stage.run(ALICE, at(60), container="3f" * 32)

    stage.tick(DUE)

    assert [pids for _, _, pids in sent(stage)] == [(job.pid,)]


def test_a_container_of_the_booking_gets_it_whatever_its_uid():
    stage = staged(asking())
    box = stage.run(0, at(60), container="3f" * 32, booking=ALICE)

    stage.tick(DUE)

    assert [pids for _, _, pids in sent(stage)] == [(box.pid,)]
