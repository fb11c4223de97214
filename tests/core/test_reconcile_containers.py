"""Containers and units: whose their processes are, and how they are stopped."""

import msgspec
import pytest

from reservations.core import attention
from reservations.core.enforcement import Keeper, Kill, Ladder, StopUnit, Terminate
from tests.core.stage import (
    ALICE,
    BOB,
    CAROL,
    GPU,
    SETTINGS,
    Process,
    Stage,
    at,
    every,
    grant,
    kinds,
)

ENDED = grant(ALICE, at(hours=-1), at(0), booking=5)
BOX = "3f" * 32
DOCKER = Keeper(engine="docker", name=BOX)
STOPS = msgspec.structs.replace(SETTINGS, unattributed_containers="stop")


def overrun_unit(**traits: object) -> tuple[Stage, Process]:
    """Alice's hour ends at eleven, and a unit of hers starts its job again whenever that ends."""
    stage = Stage(grants=[ENDED])
    stage.tick(at(-5))
    return stage, stage.run(ALICE, at(minutes=-30), keeper=DOCKER, **traits)


def test_a_unit_is_stopped_through_what_keeps_it_and_told_of_once() -> None:
    stage, job = overrun_unit()

    told = stage.ticks(every(1, at(0), at(5)))

    assert kinds(told) == ["closed", "overrun", "signalled", "gone"]
    (stop,) = stage.done(StopUnit)
    assert isinstance(stop, StopUnit)
    assert (stop.keeper, stop.pids, stop.grace_s) == (DOCKER, (job.pid,), SETTINGS.grace_s)
    assert stage.done(Terminate) == []


def test_a_unit_is_asked_to_be_done_by_the_time_the_next_person_is_let_in() -> None:
    stage, _ = overrun_unit()
    stage.grants.append(grant(BOB))

    stage.tick(at(0))

    (stop,) = stage.done(StopUnit)
    assert isinstance(stop, StopUnit)
    assert stop.grace_s == SETTINGS.grace_followed_s


def test_all_that_a_unit_keeps_is_left_to_its_manager_and_the_rest_gets_sigterm() -> None:
    stage, job = overrun_unit(obeys=False)
    worker = stage.run(ALICE, at(minutes=-30), keeper=DOCKER, ancestors=(job.pid, 1))
    other = stage.run(ALICE, at(minutes=-30), obeys=False)
    stage.managers_work = False

    stage.ticks(every(1, at(0), at(50)))

    (stop,) = stage.done(StopUnit)
    assert isinstance(stop, StopUnit)
    assert stop.pids == (job.pid, worker.pid)
    assert [action.pids for action in stage.done(Terminate)] == [(other.pid,)]


def test_a_manager_that_fails_leaves_the_ladder_to_go_on_to_stuck_and_the_next_one_waiting() -> (
    None
):
    stage, _ = overrun_unit()
    stage.managers_work = False
    stage.grants.append(grant(BOB))

    told = stage.ticks(every(0.25, at(0), at(60)))

    assert kinds(told) == [
        "closed",
        "delayed",
        "overrun",
        "signalled",
        "killed",
        "stuck",
        "delayed",
    ]
    stuck = next(fact for fact in told if fact.kind == "stuck")
    assert "started again and again" in stuck.text
    assert stage.open_to() == frozenset()
    (problem,) = attention.problems(stage.ladder)
    assert (problem.code, problem.device) == ("stuck", GPU)

    # It is tried again now and then: an engine that works again ends it.
    stage.managers_work = True
    told = stage.ticks(every(5, at(60), at(400)))
    assert kinds(told) == ["gone", "opened"]
    assert attention.problems(stage.ladder) == []


def test_what_a_unit_has_started_since_is_stopped_by_another_stop() -> None:
    stage, _ = overrun_unit()
    stage.managers_work = False
    stage.tick(at(0))
    stage.processes = [stage.run(ALICE, at(3), keeper=DOCKER)]
    stage.managers_work = True

    stage.ticks(every(1, at(4), at(6)))

    assert len(stage.done(StopUnit)) == 2
    assert stage.processes == []


def test_a_unit_that_has_only_opened_its_persons_other_device_is_not_stopped_either() -> None:
    """It may be about to use it."""
    settings = msgspec.structs.replace(SETTINGS, managed=(GPU, "GPU-b"))
    stage = Stage(settings=settings, grants=[ENDED, grant(ALICE, device="GPU-b", booking=6)])
    stage.run(ALICE, at(minutes=-30), keeper=DOCKER, obeys=False)
    stage.run(ALICE, at(minutes=-30), keeper=DOCKER, device="GPU-b", uses=False)

    stage.tick(at(0))
    stage.tick(at(0))

    assert stage.done(StopUnit) == []
    assert len(stage.done(Terminate)) == 1


@pytest.mark.parametrize("readable", [True, False])
def test_a_unit_that_serves_a_device_its_person_has_is_not_stopped_for_another(
    readable: bool,
) -> None:
    """Only what is on the ended device is ended; also while the other one cannot be read."""
    settings = msgspec.structs.replace(SETTINGS, managed=(GPU, "GPU-b"))
    stage = Stage(settings=settings, grants=[ENDED, grant(ALICE, device="GPU-b", booking=6)])
    stage.run(ALICE, at(minutes=-30), keeper=DOCKER, obeys=False)
    needed = stage.run(ALICE, at(minutes=-30), keeper=DOCKER, device="GPU-b")
    stage.unreadable_devices = set() if readable else {"GPU-b"}

    stage.ticks(every(1, at(0), at(30)))

    assert stage.done(StopUnit) == []
    assert len(stage.done(Terminate)) == 1
    assert stage.alive(needed)


def test_a_unit_that_has_something_protected_in_it_is_not_stopped() -> None:
    stage, _ = overrun_unit()
    protected = stage.run(0, at(hours=-3), keeper=DOCKER, protected="root")

    stage.ticks(every(1, at(0), at(100)))

    assert stage.done(StopUnit) == []
    assert stage.alive(protected)


def test_a_unit_on_two_ended_devices_is_stopped() -> None:
    settings = msgspec.structs.replace(SETTINGS, managed=(GPU, "GPU-b"))
    both = [grant(ALICE, at(hours=-1), at(0), booking=5, device=d) for d in settings.managed]
    stage = Stage(settings=settings, grants=both)
    stage.tick(at(-5))
    for device in settings.managed:
        stage.run(ALICE, at(minutes=-30), keeper=DOCKER, device=device)

    stage.ticks(every(1, at(0), at(3)))

    assert stage.processes == []
    assert stage.done(Kill) == []


def test_a_container_of_a_booking_is_that_bookings_whatever_its_uid() -> None:
    stage = Stage(grants=[grant(ALICE, booking=5), grant(BOB, booking=5)])
    stage.tick(at(0))
    job = stage.run(0, at(5), container=BOX, booking=5, obeys=False)

    assert stage.ticks(every(30, at(5), at(minutes=59))) == []

    told = stage.tick(at(hours=1))
    assert kinds(told) == ["closed", "closed", "overrun", "signalled"]
    assert {(f.uid, f.booking) for f in told if f.kind == "overrun"} == {(ALICE, 5)}
    assert kinds(stage.tick(at(hours=1, minutes=1))) == ["killed"]
    assert not stage.alive(job)


def test_a_container_of_an_ended_booking_goes_on_where_its_person_has_booked_on() -> None:
    stage = Stage(grants=[ENDED, grant(ALICE, booking=6)])
    stage.tick(at(-5))
    job = stage.run(0, at(minutes=-30), container=BOX, booking=5)

    assert kinds(stage.ticks(every(1, at(0), at(200)))) == ["opened"]
    assert stage.alive(job)


def test_a_container_of_the_ended_booking_delays_the_next_person() -> None:
    stage = Stage(grants=[ENDED, grant(BOB)])
    stage.tick(at(-5))
    stage.run(BOB, at(minutes=-30), container=BOX, booking=5, obeys=False)

    stage.tick(at(0))

    # Whatever uid it has chosen for itself, it is Alice's.
    assert [(r.uid, r.kind) for r in stage.ladder.rungs] == [(ALICE, "overrun")]
    assert stage.open_to() == frozenset()


@pytest.mark.parametrize("booking", [None, 999], ids=["unclaimed", "a booking nobody knows"])
def test_a_container_of_no_booking_is_reported_and_neither_stopped_nor_waited_for(
    booking: int | None,
) -> None:
    stage = Stage(grants=[grant(ALICE, at(60))])
    box = stage.run(0, at(hours=-3), container=BOX, booking=booking)

    told = stage.ticks(every(1, at(0), at(minutes=10)))

    assert kinds(told) == ["intruder", "opened"]
    assert "belongs to no booking" in told[0].text
    assert stage.open_to() == {ALICE}
    assert stage.alive(box)


def test_a_container_of_no_booking_may_be_stopped_once_somebodys_booking_begins() -> None:
    stage = Stage(settings=STOPS, grants=[grant(ALICE, at(minutes=10))])
    box = stage.run(0, at(hours=-3), container=BOX, keeper=DOCKER)

    told = stage.ticks(every(5, at(0), at(595)))
    assert kinds(told) == ["intruder", "warned"]
    assert stage.alive(box)

    told = stage.ticks(every(1, at(600), at(603)))
    assert kinds(told) == ["delayed", "signalled", "gone", "opened"]
    assert len(stage.done(StopUnit)) == 1
    assert not stage.alive(box)


def test_a_container_of_no_booking_stays_for_ever_where_nobody_has_booked() -> None:
    stage = Stage(settings=STOPS, ladder=Ladder(enforcing_since=at(hours=-99)))
    box = stage.run(0, at(hours=-3), container=BOX)

    stage.ticks(every(600, at(0), at(hours=100)))

    assert stage.alive(box)
    assert stage.done(Terminate) == []


def test_each_container_of_nobody_counts_for_itself() -> None:
    """They are led off one by one, told apart in reports, and each counts in the budget."""
    settings = msgspec.structs.replace(STOPS, kill_budget=1)
    stage = Stage(settings=settings, grants=[grant(ALICE)])
    for letter in "ab":
        stage.run(0, at(hours=-3), container=letter * 64)

    told = stage.ticks(every(5, at(0), at(100)))

    intruders = [fact for fact in told if fact.kind == "intruder"]
    assert [fact.container for fact in intruders] == ["a" * 64, "b" * 64]
    assert len({fact.id for fact in intruders}) == 2
    assert "hold_fire" in kinds(told)
    assert stage.done(Terminate) == []


def test_a_person_with_a_container_of_nobody_is_stopped_without_it() -> None:
    """Somebody who may use the engine can run it as anybody."""
    stage = Stage(grants=[ENDED])
    stage.tick(at(-5))
    job = stage.run(ALICE, at(minutes=-30))
    box = stage.run(ALICE, at(minutes=-30), container=BOX)

    stage.ticks(every(1, at(0), at(200)))

    assert not stage.alive(job)
    assert stage.alive(box)
    assert not stage.ladder.evicting


def test_a_container_of_an_exempt_person_is_left_alone() -> None:
    settings = msgspec.structs.replace(STOPS, exempt_uids=(CAROL,))
    stage = Stage(settings=settings, grants=[grant(ALICE)])
    box = stage.run(CAROL, at(hours=-3), container=BOX)

    assert kinds(stage.ticks(every(5, at(0), at(200)))) == ["opened"]
    assert stage.alive(box)
