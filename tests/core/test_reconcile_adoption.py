"""Switching a host to `enforce`, and the other brakes: whatever ran before is nobody's fault of today."""

from datetime import datetime, timedelta

import msgspec
import pytest

from reservations.core import attention, preview
from reservations.core.enforcement import HostGrant, Ladder, Terminate
from reservations.core.wire import HostSettings
from tests.core.stage import ALICE, BOB, CAROL, GPU, SETTINGS, Stage, at, every, grant, kinds

CARDS = tuple(f"GPU-{number:02}" for number in range(12))
PEOPLE = tuple(range(61010, 61019))
OBSERVED = HostSettings(mode="observe", managed=CARDS)


def busy_host() -> Stage:
    """Twelve cards on which nine people have computed since yesterday, without ever booking."""
    stage = Stage(settings=OBSERVED, ladder=Ladder())
    for number, card in enumerate(CARDS):
        stage.run(PEOPLE[number % len(PEOPLE)], at(hours=-20), device=card)
    stage.tick(at(0))
    stage.settings = msgspec.structs.replace(OBSERVED, mode="enforce")
    return stage


def ended(stage: Stage) -> list[tuple[datetime, str, int]]:
    return [
        (when, action.device, action.uid)
        for when, action in stage.actions
        if isinstance(action, Terminate)
    ]


def test_twelve_unbooked_jobs_of_nine_people_outlive_the_switch() -> None:
    stage = busy_host()

    told = stage.ticks(every(600, at(1), at(hours=71)))

    assert len(stage.processes) == 12
    assert kinds(told) == ["warned"] * 12
    assert {fact.text for fact in told} == {
        "not booked; it may stay until somebody books the device"
    }


def test_only_the_device_that_somebody_else_books_is_cleared() -> None:
    stage = busy_host()
    stage.tick(at(1))
    stage.grants = [grant(ALICE, at(hours=1), device=CARDS[3])]

    stage.ticks(every(60, at(2), at(hours=1, minutes=30)))

    assert ended(stage) == [(at(hours=1, seconds=2), CARDS[3], PEOPLE[3])]
    assert len(stage.processes) == 11
    assert stage.open_to(CARDS[3]) == {ALICE}


def test_who_books_what_they_already_use_is_left_alone_until_their_own_end() -> None:
    stage = busy_host()
    stage.tick(at(1))
    stage.grants = [grant(PEOPLE[5], at(hours=1), at(hours=80), device=CARDS[5])]

    stage.ticks(every(900, at(2), at(hours=71)))
    assert len(stage.processes) == 12

    stage.ticks(every(900, at(hours=79), at(hours=80, minutes=1)))
    assert (CARDS[5], PEOPLE[5]) in {(device, uid) for _, device, uid in ended(stage)}


def test_when_all_are_adopted_no_longer_the_budget_holds_fire_until_root_adopts_again() -> None:
    stage = busy_host()
    stage.ticks(every(3600, at(1), at(hours=71)))

    told = stage.tick(at(hours=72, seconds=1))

    assert kinds(told) == ["hold_fire"]
    (problem,) = attention.problems(stage.ladder)
    assert problem.code == "hold_fire"
    assert "berth-host adopt" in problem.text
    assert len(stage.processes) == 12

    stage.ladder = msgspec.structs.replace(stage.ladder, enforcing_since=at(hours=73))
    assert stage.tick(at(hours=73)) == []
    assert attention.problems(stage.ladder) == []
    assert len(stage.processes) == 12


def test_a_larger_budget_frees_what_was_held() -> None:
    stage = busy_host()
    stage.ticks(every(3600, at(1), at(hours=73)))
    stage.settings = msgspec.structs.replace(stage.settings, kill_budget=12)

    assert "signalled" in kinds(stage.tick(at(hours=74)))
    assert stage.processes == []


def test_the_preview_names_those_whom_the_agent_then_stops_and_when() -> None:
    stage = busy_host()
    stage.grants = [
        grant(ALICE, at(hours=2), device=CARDS[0]),
        grant(PEOPLE[1], at(hours=1), at(hours=3), device=CARDS[1]),
        grant(BOB, at(hours=5), device=CARDS[2]),
    ]
    foreseen = preview.foresee(
        stage.grants,
        {card: state.holders or () for card, state in stage.look().items()},
        settings=stage.settings,
        now=at(0),
    )
    named = [stop for stop in foreseen.stops if stop.at is not None]
    assert [(stop.at, stop.device, stop.why) for stop in named] == [
        (at(hours=2), CARDS[0], "booked"),
        (at(hours=3), CARDS[1], "ended"),
        (at(hours=5), CARDS[2], "booked"),
    ]
    assert {stop.party.uid for stop in foreseen.stops} == set(PEOPLE)
    assert foreseen.fire_held_at == at(hours=72)

    stage.ticks(every(60, at(0), at(hours=6)))
    assert ended(stage) == [(stop.at, stop.device, stop.party.uid) for stop in named]


def test_an_overrun_of_before_the_switch_is_adopted_and_one_of_after_it_is_not() -> None:
    before, after = grant(ALICE, at(hours=-2), at(hours=-1)), grant(BOB, at(hours=-1), at(hours=1))
    settings = msgspec.structs.replace(SETTINGS, managed=(GPU, "GPU-b"))
    stage = Stage(
        settings=settings,
        grants=[before, msgspec.structs.replace(after, device="GPU-b")],
        ladder=Ladder(),
    )
    old = stage.run(ALICE, at(hours=-2))
    late = stage.run(BOB, at(hours=-1), device="GPU-b")

    stage.ticks(every(60, at(0), at(hours=2)))

    assert stage.alive(old)
    assert not stage.alive(late)


@pytest.mark.parametrize(
    ("late_s", "kind"),
    [(-0.5, "overrun"), (0.05, "overrun"), (0.2, "intruder"), (1.5, "intruder")],
)
def test_what_began_a_fifth_of_a_second_after_the_end_is_an_intruder_and_is_warned(
    late_s: float, kind: str
) -> None:
    """Within a tick of the clock it counts as an overrun: start times are no finer."""
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(0))])
    stage.tick(at(-5))
    stage.tick(at(0))
    stage.run(ALICE, at(late_s), obeys=False)

    told = stage.tick(at(2))

    assert kinds(told)[0] == kind
    assert ("signalled" in kinds(told)) == (kind == "overrun")


def test_the_budget_holds_back_nobody_who_was_signalled_before() -> None:
    settings = msgspec.structs.replace(SETTINGS, kill_budget=1, managed=CARDS)
    stage = Stage(settings=settings)
    first = stage.run(ALICE, at(0), device=CARDS[0], obeys=False)
    stage.ticks(every(1, at(0), at(61)))
    for uid in (BOB, CAROL):
        stage.run(uid, at(61), device=CARDS[1])

    told = stage.ticks(every(1, at(61), at(200)))

    assert "hold_fire" in kinds(told)
    assert not stage.alive(first)
    assert len(stage.processes) == 2


def test_grants_of_one_booking_for_several_people_at_once_are_no_dispute() -> None:
    people: list[HostGrant] = [grant(uid, booking=1) for uid in (ALICE, BOB)]
    later = [grant(uid, at(hours=1), booking=2) for uid in (BOB, CAROL)]
    stage = Stage(grants=[*people, *later])
    stage.tick(at(0))
    jobs = {uid: stage.run(uid, at(1)) for uid in (ALICE, BOB)}

    told = stage.ticks(every(30, at(30), at(hours=1) + timedelta(minutes=5)))

    assert "overlap" not in kinds(told)
    assert [fact.uid for fact in told if fact.kind == "overrun"] == [ALICE]
    assert stage.alive(jobs[BOB])
    assert stage.open_to() == {BOB, CAROL}


def test_a_running_booking_that_waits_for_an_adopted_job_after_a_second_switch_is_told_that_it_opened() -> (
    None
):
    stage = Stage(grants=[grant(ALICE, end=at(hours=2))])
    first = stage.tick(at(0))
    stage.settings = msgspec.structs.replace(SETTINGS, mode="observe")
    stage.ticks([at(60)])
    stage.run(BOB, at(70))

    stage.settings = SETTINGS
    told = stage.ticks(every(1, at(80), at(200)))

    assert kinds(first) == ["opened"]
    assert [(f.kind, f.uid, f.edge) for f in told if f.kind in {"delayed", "opened"}] == [
        ("delayed", ALICE, at(80)),
        ("opened", ALICE, at(80)),
    ]
    # The server keeps each id once.
    assert first[0].id not in {fact.id for fact in told}
