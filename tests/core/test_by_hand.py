"""A device that root on the host gave to somebody by hand, beside the bookings of the plan."""

import msgspec

from reservations.core.enforcement import HostGrant, SetGate, Terminate
from tests.core.stage import ALICE, BOB, CAROL, GPU, Stage, at, every, grant, kinds


def by_hand(uid: int, start_s: float, end_s: float) -> HostGrant:
    given = grant(uid, at(start_s), at(end_s))
    return msgspec.structs.replace(given, booking=None)


def test_a_grant_by_hand_opens_an_unbooked_device_and_closes_it_at_its_end() -> None:
    stage = Stage(grants=[by_hand(BOB, 0, 600)])

    assert kinds(stage.tick(at(0))) == ["opened"]
    assert stage.open_to() == {BOB}
    job = stage.run(BOB, at(60))
    told = stage.ticks([at(600), at(600.1)])

    assert kinds(told) == ["closed", "overrun", "signalled", "gone"]
    assert {fact.booking for fact in told} == {None}
    assert stage.open_to() == frozenset()
    assert not stage.alive(job)


def test_a_grant_by_hand_goes_before_a_booking_whose_person_waits_is_told_and_is_not_stopped() -> (
    None
):
    stage = Stage(grants=[grant(ALICE)])
    stage.tick(at(0))
    hers = stage.run(ALICE, at(10))

    stage.grants.append(by_hand(BOB, 60, 600))
    told = stage.ticks(every(1, at(60), at(599)))

    assert stage.open_to() == {BOB}
    assert [(f.kind, f.booking, f.uid) for f in told] == [
        ("delayed", ALICE, ALICE),
        ("opened", None, BOB),
    ]
    assert stage.alive(hers)
    told = stage.ticks([at(600), at(600.1), at(660)])
    assert stage.open_to() == {ALICE}
    assert stage.done(Terminate) == []
    assert [(f.kind, f.uid, f.edge) for f in told] == [
        ("closed", BOB, at(600)),
        ("opened", ALICE, at(600)),
    ]


def test_the_gate_is_never_open_to_the_booked_person_and_to_the_one_by_hand_at_once() -> None:
    stage = Stage(grants=[grant(ALICE)])
    stage.tick(at(0))
    stage.grants.append(by_hand(BOB, 60, 600))

    stage.ticks(every(1, at(60), at(700)))

    moves = [action.uids for action in stage.done(SetGate) if isinstance(action, SetGate)]
    assert all(len(uids) <= 1 for uids in moves)
    assert moves == [{ALICE}, set(), {BOB}, set(), {ALICE}]


def test_a_grant_by_hand_to_the_booked_person_changes_nothing_until_the_booking_ends() -> None:
    stage = Stage(grants=[grant(ALICE, at(0), at(600))])
    stage.tick(at(0))
    job = stage.run(ALICE, at(10))

    stage.grants.append(by_hand(ALICE, 60, 1200))
    assert kinds(stage.ticks(every(1, at(60), at(1199)))) == ["opened"]

    assert stage.open_to() == {ALICE}
    assert stage.alive(job)


def test_an_intruder_is_stopped_for_a_grant_by_hand_as_for_a_booking() -> None:
    stage = Stage(grants=[by_hand(BOB, 0, 3600)])
    stage.run(CAROL, at(-600))

    stage.ticks(every(1, at(0), at(120)))

    assert [f.uid for f in stage.facts if f.kind == "gone"] == [CAROL]
    assert stage.open_to(GPU) == {BOB}
