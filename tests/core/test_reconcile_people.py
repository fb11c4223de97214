"""Stopping people: how far, how fast, and all the doubts that stop nobody."""

from dataclasses import replace
from datetime import timedelta

import msgspec
import pytest

from reservations.core.enforcement import Kill, Ladder, PlanState, Tell, Terminate
from reservations.core.reconcile import next_edge
from tests.core.stage import (
    ALICE,
    BOB,
    CAROL,
    GPU,
    SETTINGS,
    Stage,
    at,
    every,
    grant,
    kinds,
)

ENDED = grant(ALICE, at(hours=-1), at(0))
WALK_UP = msgspec.structs.replace(SETTINGS, unbooked_use="allow")


def overrunning(**fields: object) -> Stage:
    """Alice's hour ends at eleven; her job ignores SIGTERM."""
    stage = Stage(grants=[ENDED], **fields)  # type: ignore[arg-type]
    stage.tick(at(-5))
    stage.run(ALICE, at(minutes=-30), obeys=False)
    return stage


def first(stage: Stage, kind: type) -> object:
    return next((when for when, action in stage.actions if isinstance(action, kind)), None)


@pytest.mark.parametrize("booked", [True, False])
def test_an_intruder_is_told_then_warned_and_signalled_only_after_the_grace(booked: bool) -> None:
    stage = Stage(grants=[grant(ALICE)] if booked else [])
    stage.tick(at(0))
    stage.run(BOB, at(5), obeys=False)

    told = stage.ticks(every(1, at(5), at(200)))

    told = [fact for fact in told if fact.kind != "opened"]
    assert kinds(told) == ["intruder", "warned", "signalled", "killed", "gone"]
    assert first(stage, Terminate) == at(5 + SETTINGS.intruder_grace_s)
    grace_s = SETTINGS.grace_followed_s if booked else SETTINGS.grace_s
    assert first(stage, Kill) == at(5 + SETTINGS.intruder_grace_s + grace_s)
    assert {fact.booking for fact in told} == {ALICE if booked else None}


def test_an_intruder_who_leaves_in_time_is_not_signalled() -> None:
    stage = Stage()
    job = stage.run(BOB, at(0))
    stage.ticks(every(1, at(0), at(30)))
    stage.processes.remove(job)

    told = stage.ticks(every(1, at(31), at(100)))

    assert kinds(told) == ["gone"]
    assert not stage.done(Terminate)


def test_an_intruder_who_books_the_device_is_left_alone() -> None:
    stage = Stage()
    job = stage.run(BOB, at(0))
    stage.ticks(every(1, at(0), at(30)))
    stage.grants = [grant(BOB, at(30))]

    told = stage.ticks(every(1, at(30), at(200)))

    assert kinds(told) == ["opened"]
    assert stage.alive(job)


def test_sigterm_goes_to_the_topmost_holder_and_sigkill_to_all() -> None:
    stage = Stage(grants=[ENDED])
    stage.tick(at(-5))
    parent = stage.run(ALICE, at(minutes=-30), obeys=False, ancestors=(1,))
    workers = [stage.run(ALICE, at(minutes=-30), ancestors=(900, parent.pid, 1)) for _ in range(3)]

    stage.ticks(every(1, at(0), at(60)))

    (terminate,) = stage.done(Terminate)
    assert terminate.pids == (parent.pid,)
    assert stage.done(Kill)[0].pids == (parent.pid, *(worker.pid for worker in workers))


def test_workers_whose_parent_has_ended_are_signalled_in_their_turn() -> None:
    stage = Stage(grants=[ENDED])
    stage.tick(at(-5))
    parent = stage.run(ALICE, at(minutes=-30), ancestors=(1,))
    worker = stage.run(ALICE, at(minutes=-30), ancestors=(parent.pid, 1), obeys=False)
    stage.tick(at(0))
    assert not stage.alive(parent)
    # Without a context of its own it is no longer in the vendor's list, but was in use when signalled.
    stage.processes = [replace(worker, ancestors=(1,), obeys=True, uses=False)]

    told = stage.ticks(every(1, at(1), at(3)))

    assert [action.pids for action in stage.done(Terminate)] == [(parent.pid,), (worker.pid,)]
    assert kinds(told) == ["gone"]


def test_processes_forked_after_the_first_kill_are_killed_in_the_next_pass() -> None:
    stage = overrunning()
    stage.ticks(every(0.25, at(0), at(60)))
    child = stage.run(ALICE, at(60))
    assert kinds(stage.ticks([at(60.25), at(60.5)])) == ["gone"]
    assert not stage.alive(child)


def test_a_process_is_gone_only_when_the_next_look_does_not_see_it() -> None:
    stage = overrunning()
    stage.ticks(every(1, at(0), at(59)))

    assert kinds(stage.tick(at(60))) == ["killed"]
    assert kinds(stage.tick(at(61))) == ["gone"]


def test_what_cannot_be_killed_is_called_stuck_once_holds_the_device_back_and_ends_the_loop() -> (
    None
):
    stage = Stage(grants=[ENDED, grant(BOB, booking=7)])
    stage.tick(at(-5))
    stage.run(ALICE, at(minutes=-30), obeys=False, mortal=False)

    told = stage.ticks(every(0.25, at(0), at(minutes=4)))

    assert len(stage.done(Kill)) == 5
    assert kinds(told).count("stuck") == 1
    assert stage.open_to() == frozenset()
    waits = [fact for fact in told if fact.kind == "delayed"]
    assert [fact.booking for fact in waits] == [7, 7]
    assert "attention" in waits[1].text
    assert not stage.ladder.evicting

    stage.ticks(every(1, at(minutes=4), at(minutes=20)))
    assert len(stage.done(Kill)) <= 5 + 4


def test_an_unconfirmed_end_closes_the_gate_and_stops_nobody() -> None:
    stage = overrunning()
    stage.plan = PlanState(as_of=at(-6))

    told = stage.ticks(every(1, at(0), at(minutes=10)))

    assert kinds(told) == ["closed"]
    assert stage.open_to() == frozenset()
    assert not stage.done(Terminate)


def test_a_plan_of_five_seconds_before_the_end_confirms_it() -> None:
    stage = overrunning()
    stage.plan = PlanState(as_of=at(-5))

    assert "signalled" in kinds(stage.tick(at(0)))


def test_an_unconfirmed_end_is_carried_out_once_somebody_elses_grant_begins() -> None:
    stage = overrunning()
    stage.grants.append(grant(BOB, at(minutes=5)))
    stage.plan = PlanState(as_of=at(-60))

    assert kinds(stage.ticks(every(1, at(0), at(299)))) == ["closed"]
    told = stage.ticks(every(1, at(300), at(330)))

    assert kinds(told) == ["delayed", "overrun", "signalled", "killed", "gone", "opened"]


def test_an_unconfirmed_end_is_carried_out_late_once_a_plan_confirms_it() -> None:
    stage = overrunning()
    stage.plan = PlanState(as_of=at(-60))
    stage.tick(at(0))
    stage.plan = PlanState(as_of=at(120))

    told = stage.tick(at(120))

    assert kinds(told) == ["overrun", "signalled"]
    assert told[1].latency_s(at(120)) == 120


def test_past_what_the_plan_knows_nothing_moves() -> None:
    stage = overrunning()
    stage.plan = PlanState(as_of=at(-5), complete_until=at(0))

    assert stage.ticks(every(1, at(0), at(300))) == []
    assert stage.open_to() == {ALICE}


def test_without_leave_to_stop_gates_move_and_nobody_is_judged() -> None:
    stage = overrunning()
    stage.plan = PlanState(as_of=at(0), may_stop=False)
    stage.run(BOB, at(0))

    told = stage.ticks(every(1, at(0), at(300)))

    assert kinds(told) == ["closed"]
    assert not stage.done(Terminate)


def test_more_intruders_than_the_budget_are_held_and_reported_once() -> None:
    settings = msgspec.structs.replace(SETTINGS, kill_budget=2)
    stage = Stage(settings=settings)
    for uid in (ALICE, BOB, CAROL):
        stage.run(uid, at(0))

    told = stage.ticks(every(1, at(0), at(minutes=10)))

    assert kinds(told).count("hold_fire") == 1
    assert not stage.done(Terminate)


def test_the_budget_counts_nobody_whose_own_end_has_come() -> None:
    settings = msgspec.structs.replace(SETTINGS, kill_budget=1)
    people = [grant(uid, at(hours=-1), at(0), booking=1) for uid in (ALICE, BOB, CAROL)]
    stage = Stage(settings=settings, grants=people)
    stage.tick(at(-5))
    for uid in (ALICE, BOB, CAROL):
        stage.run(uid, at(minutes=-30))

    told = stage.tick(at(0))

    assert kinds(told).count("signalled") == 3
    assert "hold_fire" not in kinds(told)


def test_fire_is_resumed_when_few_enough_are_left() -> None:
    settings = msgspec.structs.replace(SETTINGS, kill_budget=1)
    stage = Stage(settings=settings)
    first_job = stage.run(ALICE, at(0))
    stage.run(BOB, at(0))
    stage.ticks(every(1, at(0), at(90)))
    assert not stage.done(Terminate)
    stage.processes.remove(first_job)

    assert "signalled" in kinds(stage.ticks(every(1, at(91), at(92))))


def test_on_an_open_device_an_end_with_nobody_following_stops_nobody() -> None:
    stage = overrunning(settings=WALK_UP)

    told = stage.ticks(every(1, at(0), at(minutes=10)))

    assert kinds(told) == ["closed"]
    gate = stage.gates[GPU]
    assert gate is not None
    assert gate.group_open
    assert not stage.done(Terminate)


def test_a_walk_up_is_warned_before_a_booking_and_evicted_at_its_start() -> None:
    stage = Stage(settings=WALK_UP, grants=[grant(ALICE)])
    stage.tick(at(hours=-2))
    job = stage.run(BOB, at(hours=-1))

    told = stage.ticks(every(30, at(minutes=-30), at(-30)))
    assert [(fact.kind, fact.uid, fact.booking) for fact in told] == [("warned", BOB, ALICE)]
    assert stage.actions[-1][0] == at(minutes=-15)

    told = stage.tick(at(0))
    assert kinds(told) == ["delayed", "signalled"]
    assert not stage.alive(job)
    assert kinds(stage.tick(at(0.1))) == ["gone", "opened"]
    assert stage.open_to() == {ALICE}


def test_a_walk_up_of_the_person_who_has_booked_next_goes_on() -> None:
    stage = Stage(settings=WALK_UP, grants=[grant(ALICE)])
    stage.tick(at(hours=-2))
    job = stage.run(ALICE, at(hours=-1))

    told = stage.ticks(every(30, at(minutes=-30), at(minutes=5)))

    assert kinds(told) == ["opened"]
    assert stage.alive(job)


def test_a_walk_up_is_left_alone_again_when_the_booking_is_cancelled() -> None:
    stage = Stage(settings=WALK_UP, grants=[grant(ALICE)])
    stage.run(BOB, at(hours=-1))
    stage.ticks(every(30, at(minutes=-16), at(minutes=-10)))
    stage.grants = []

    told = stage.ticks(every(30, at(minutes=-10), at(minutes=10)))

    assert told == []
    assert stage.ladder.rungs == ()


def test_on_an_open_device_somebody_who_comes_after_the_start_is_an_intruder() -> None:
    stage = Stage(settings=WALK_UP, grants=[grant(ALICE)])
    stage.tick(at(hours=-2))
    stage.tick(at(0))
    stage.run(BOB, at(10))

    told = stage.ticks(every(1, at(10), at(20)))

    assert kinds(told) == ["intruder", "warned"]


def test_processes_older_than_the_switch_are_adopted_until_somebody_books() -> None:
    stage = Stage(ladder=Ladder())
    job = stage.run(BOB, at(hours=-5), obeys=False)

    told = stage.ticks(every(60, at(0), at(hours=5)))
    assert kinds(told) == ["intruder", "warned"]
    assert stage.alive(job)

    stage.grants = [grant(ALICE, at(hours=6))]
    told = stage.ticks(every(1, at(hours=6), at(hours=6, seconds=30)))
    assert kinds(told) == ["delayed", "signalled", "killed", "gone", "opened"]


def test_processes_older_than_the_switch_are_stopped_after_the_time_of_adoption() -> None:
    stage = Stage(ladder=Ladder())
    stage.run(BOB, at(hours=-5))
    stage.ticks(every(600, at(0), at(hours=71, minutes=50)))
    assert not stage.done(Terminate)
    assert next_edge([], ladder=stage.ladder, settings=SETTINGS, now=at(hours=70)) == at(hours=72)

    assert kinds(stage.tick(at(hours=72))) == ["signalled"]


def test_a_new_process_beside_an_adopted_one_is_stopped_alone() -> None:
    stage = Stage(ladder=Ladder())
    old = stage.run(BOB, at(hours=-5))
    stage.tick(at(0))
    new = stage.run(BOB, at(10))

    stage.ticks(every(5, at(10), at(300)))

    assert stage.alive(old)
    assert not stage.alive(new)


def test_the_end_of_ones_own_booking_ends_also_what_was_adopted_before() -> None:
    stage = Stage(ladder=Ladder(), grants=[grant(ALICE, at(minutes=10))])
    job = stage.run(ALICE, at(hours=-5))
    stage.ticks(every(60, at(0), at(minutes=69)))
    assert stage.alive(job)

    stage.tick(at(minutes=70))

    assert not stage.alive(job)


def test_the_grace_goes_on_where_it_was_when_the_agent_restarts() -> None:
    stage = overrunning()
    stage.ticks(every(1, at(0), at(20)))

    # Down until after the grace: the ladder on disk says since when.
    told = stage.tick(at(61))

    assert kinds(told) == ["killed"]


def test_a_grace_under_way_is_cut_short_when_somebody_elses_booking_begins() -> None:
    stage = overrunning()
    stage.grants.append(grant(BOB, at(10)))

    stage.ticks(every(1, at(0), at(40)))

    assert first(stage, Kill) == at(10) + timedelta(seconds=SETTINGS.grace_followed_s)


def test_a_host_that_was_down_over_an_end_closes_and_evicts_at_its_first_look() -> None:
    stage = overrunning()

    told = stage.tick(at(minutes=30))

    assert kinds(told) == ["closed", "overrun", "signalled"]


def test_facts_have_an_id_that_a_repeat_shares_and_another_fact_does_not() -> None:
    stage = overrunning()
    ladder = stage.ladder
    told = stage.tick(at(0))
    ids = {fact.id for fact in told}
    assert len(ids) == len(told)

    # Killed after acting, before the ladder was stored: the gate is closed now.
    stage.ladder = ladder
    repeated = stage.decide(at(0)).actions
    assert {f.id for action in repeated if isinstance(action, Tell) for f in action.facts} <= ids
