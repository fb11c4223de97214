"""The main road of a slot: open, end, next person; and whom nobody may touch."""

import msgspec
import pytest

from reservations.core.enforcement import (
    GateMark,
    GateState,
    Kill,
    Ladder,
    PlanState,
    RestoreGate,
    SetGate,
    Tell,
    Terminate,
)
from reservations.core.reconcile import next_edge, plan_actions
from reservations.core.wire import HostSettings
from tests.core.stage import (
    ALICE,
    BOB,
    CAROL,
    ELEVEN,
    GPU,
    SETTINGS,
    Stage,
    at,
    every,
    grant,
    kinds,
)


def test_a_device_opens_at_the_start_and_not_before() -> None:
    stage = Stage(grants=[grant(ALICE)])

    stage.tick(at(-0.001))
    assert stage.open_to() == frozenset()

    told = stage.tick(at(0))
    assert stage.open_to() == {ALICE}
    assert [(f.kind, f.booking, f.uid, f.latency_s(at(0.02))) for f in told] == [
        ("opened", ALICE, ALICE, 0.02)
    ]


def test_the_gate_closes_at_the_end_before_anybody_is_signalled() -> None:
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(0))])
    stage.tick(at(-5))
    job = stage.run(ALICE, at(minutes=-30))

    told = stage.tick(at(0))

    moves = [type(action) for _, action in stage.actions if not isinstance(action, Tell)]
    assert moves[-2:] == [SetGate, Terminate]
    assert stage.open_to() == frozenset()
    assert kinds(told) == ["closed", "overrun", "signalled"]
    assert all(fact.edge == ELEVEN for fact in told)
    assert not stage.alive(job)
    assert kinds(stage.tick(at(0.1))) == ["gone"]


def test_both_owners_at_the_boundary_second_only_the_next_one_holds() -> None:
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(0)), grant(BOB)])
    stage.tick(at(-5))
    stage.run(ALICE, at(minutes=-30))

    told = stage.tick(at(0))

    assert "overrun" in kinds(told)
    assert [f.uid for f in told if f.kind == "overrun"] == [ALICE]
    stage.tick(at(0.1))
    assert stage.open_to() == {BOB}


def test_back_to_back_bookings_of_one_person_make_no_gap_and_no_warning() -> None:
    first = grant(ALICE, at(hours=-1), at(0), booking=1)
    second = grant(ALICE, at(0), at(hours=1), booking=2)
    stage = Stage(grants=[first, second])
    stage.tick(at(minutes=-30))
    job = stage.run(ALICE, at(minutes=-20))
    stage.actions.clear()

    told = stage.ticks(every(1, at(-60), at(60)))

    assert [(f.kind, f.booking) for f in told] == [("opened", 2)]
    assert not stage.done(SetGate)
    assert stage.alive(job)


def test_a_holder_that_ignores_sigterm_delays_the_next_person_by_the_short_grace_only() -> None:
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(0)), grant(BOB, booking=7)])
    stage.tick(at(-5))
    job = stage.run(ALICE, at(minutes=-30), obeys=False)

    told = stage.ticks(every(0.25, at(0), at(20)))

    assert kinds(told) == [
        "closed",
        "delayed",
        "overrun",
        "signalled",
        "killed",
        "gone",
        "opened",
    ]
    assert not stage.alive(job)
    killed_at = next(when for when, action in stage.actions if isinstance(action, Kill))
    assert killed_at == at(SETTINGS.grace_followed_s)
    assert stage.open_to() == {BOB}
    delayed = next(fact for fact in told if fact.kind == "delayed")
    assert (delayed.booking, delayed.uid) == (7, BOB)


def test_a_holder_that_ignores_sigterm_is_killed_within_the_set_grace() -> None:
    settings = msgspec.structs.replace(SETTINGS, grace_s=5.0)
    stage = Stage(settings=settings, grants=[grant(ALICE, at(hours=-1), at(0))])
    stage.tick(at(-5))
    job = stage.run(ALICE, at(minutes=-30), obeys=False)

    stage.ticks(every(0.25, at(0), at(4.75)))
    assert stage.alive(job)
    stage.tick(at(5))
    assert not stage.alive(job)


def test_the_next_person_is_told_of_a_delay_once() -> None:
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(0)), grant(BOB)])
    stage.tick(at(-5))
    stage.run(ALICE, at(minutes=-30), obeys=False)

    told = stage.ticks(every(1, at(0), at(10)))

    assert kinds(told).count("delayed") == 1


def test_nobody_is_shut_out_because_of_an_intruder() -> None:
    stage = Stage(grants=[grant(ALICE)])
    stage.tick(at(0))
    stage.run(BOB, at(30))

    stage.ticks(every(1, at(30), at(50)))

    assert stage.open_to() == {ALICE}


def test_people_of_one_booking_are_all_let_in_and_one_whose_grant_began_later_too() -> None:
    stage = Stage(
        grants=[
            grant(ALICE, booking=1),
            grant(BOB, booking=1),
            grant(CAROL, at(minutes=10), at(hours=1), booking=1),
        ]
    )
    stage.tick(at(0))
    assert stage.open_to() == {ALICE, BOB}
    stage.run(ALICE, at(5))
    stage.run(BOB, at(5))

    stage.ticks(every(60, at(0), at(minutes=10)))

    assert stage.open_to() == {ALICE, BOB, CAROL}
    assert not stage.done(Terminate)


def test_overlapping_bookings_honour_the_one_that_began_first_and_stop_nobody() -> None:
    stage = Stage(grants=[grant(BOB, at(minutes=-30), at(minutes=30)), grant(ALICE)])
    stage.tick(at(minutes=-30))
    stage.run(BOB, at(minutes=-20))
    stage.run(ALICE, at(1))

    told = stage.ticks(every(10, at(0), at(minutes=5)))

    assert kinds(told) == ["overlap"]
    assert told[0].booking == ALICE
    assert stage.open_to() == {BOB}
    assert not stage.done(Terminate)


def test_a_person_with_another_device_booked_loses_only_the_processes_of_the_ended_one() -> None:
    settings = msgspec.structs.replace(SETTINGS, managed=("GPU-a", "GPU-b"))
    stage = Stage(
        settings=settings,
        grants=[
            grant(ALICE, at(hours=-1), at(0)),
            grant(ALICE, at(hours=-1), at(hours=1), booking=2, device="GPU-b"),
        ],
    )
    stage.tick(at(-5))
    ended = stage.run(ALICE, at(minutes=-30))
    going_on = stage.run(ALICE, at(minutes=-30), device="GPU-b")

    stage.tick(at(0))

    assert not stage.alive(ended)
    assert stage.alive(going_on)
    assert stage.open_to("GPU-b") == {ALICE}


def test_a_device_that_is_not_on_the_list_is_never_touched() -> None:
    stage = Stage(
        gates={"GPU-b": GateState(group_open=True)}, grants=[grant(ALICE, device="GPU-b")]
    )
    stage.run(BOB, at(-5), device="GPU-b")

    told = stage.ticks(every(30, at(0), at(minutes=10)))

    assert told == []
    assert stage.actions == []


def test_changing_the_order_of_the_cards_changes_nothing() -> None:
    """A device is its UUID."""
    settings = msgspec.structs.replace(SETTINGS, managed=("GPU-b", "GPU-a"))
    stage = Stage(settings=settings, grants=[grant(ALICE, device="GPU-b")])
    stage.tick(at(0))
    stage.gates = dict(reversed(stage.gates.items()))
    stage.grants.reverse()

    stage.actions.clear()
    stage.tick(at(5))

    assert stage.actions == []
    assert stage.open_to("GPU-b") == {ALICE}


@pytest.mark.parametrize("uid_list", ["exempt_uids", "always_open_uids"])
def test_exempt_people_are_neither_stopped_nor_in_the_way(uid_list: str) -> None:
    settings = msgspec.structs.replace(SETTINGS, **{uid_list: (BOB,)})
    stage = Stage(settings=settings, grants=[grant(ALICE)])
    stage.run(BOB, at(minutes=-30))

    told = stage.ticks(every(30, at(minutes=-5), at(minutes=10)))

    assert kinds(told) == ["opened"]
    assert ALICE in stage.open_to()
    assert not stage.done(Terminate)


def test_a_desktop_or_system_process_is_neither_use_nor_in_the_way() -> None:
    stage = Stage(grants=[grant(ALICE)])
    stage.run(BOB, at(minutes=-30), uses=False)
    stage.run(0, at(minutes=-30), protected="root or a system account")

    told = stage.ticks(every(30, at(minutes=-5), at(minutes=10)))

    assert kinds(told) == ["opened"]
    assert not stage.done(Terminate)


@pytest.mark.parametrize("mode", ["observe", "warn"])
def test_only_the_mode_enforce_acts(mode: str) -> None:
    settings = msgspec.structs.replace(SETTINGS, mode=mode)
    stage = Stage(settings=settings, grants=[grant(ALICE), grant(BOB, at(hours=-1), at(0))])
    stage.run(BOB, at(minutes=-30))
    stage.run(CAROL, at(-70))

    told = stage.ticks(every(5, at(-60), at(minutes=10)))

    warned = [BOB, CAROL] if mode == "warn" else []
    assert sorted(fact.uid for fact in told if fact.kind == "warned") == warned
    assert {f.kind for f in told} - {"warned"} == {"overrun", "intruder"}
    assert {type(action).__name__ for _, action in stage.actions} == {"Tell"}


def test_leaving_enforce_gives_the_nodes_back_once() -> None:
    stage = Stage(grants=[grant(ALICE)])
    stage.tick(at(0))
    stage.settings = msgspec.structs.replace(SETTINGS, mode="observe")

    stage.tick(at(5))
    stage.tick(at(10))

    assert stage.done(RestoreGate) == [RestoreGate(device=GPU)]


def test_a_gate_that_somebody_changed_is_put_right_and_reported() -> None:
    stage = Stage(grants=[grant(ALICE)])
    stage.tick(at(0))
    stage.gates[GPU] = GateState(uids=frozenset({ALICE, BOB}), sound=False)

    told = stage.tick(at(5))

    assert kinds(told) == ["drift"]
    assert stage.gates[GPU] == GateState(uids=frozenset({ALICE}))


def test_a_gate_that_cannot_be_set_is_tried_again_and_nothing_is_claimed() -> None:
    stage = Stage(grants=[grant(ALICE)])
    stage.tick(at(-5))
    decision = stage.decide(at(0))
    (failed,) = decision.actions
    assert isinstance(failed, SetGate)

    stage.ladder = decision.ladder.without_gate(failed)

    assert kinds(stage.tick(at(1))) == ["opened"]
    assert stage.open_to() == {ALICE}


def test_a_grant_for_root_needs_no_gate_and_keeps_none_busy() -> None:
    stage = Stage(grants=[grant(0)])

    stage.ticks(every(5, at(-5), at(30)))

    assert not stage.done(SetGate)


def test_an_unknown_gate_moves_nothing_and_stops_nobody() -> None:
    stage = Stage(gates={GPU: None}, grants=[grant(ALICE, at(hours=-1), at(0)), grant(BOB)])
    stage.run(ALICE, at(minutes=-30))

    stage.ticks(every(5, at(0), at(60)))

    assert not stage.done(SetGate)
    assert not stage.done(Terminate)


def test_before_the_first_reading_unknown_is_neither_free_nor_a_violation() -> None:
    """The gate goes on, nobody is stopped on a guess, and nobody is said to be gone."""
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(0)), grant(BOB)])
    stage.tick(at(-5))
    stage.run(ALICE, at(minutes=-30), obeys=False)
    stage.tick(at(0))
    stage.unreadable = True
    stage.actions.clear()

    told = stage.ticks(every(5, at(5), at(60)))

    assert "gone" not in kinds(told)
    assert not stage.done(Kill)
    assert stage.ladder.rungs


def test_an_unreadable_device_opens_unless_somebody_was_seen_on_it_last() -> None:
    free, held = Stage(grants=[grant(ALICE)]), Stage(grants=[grant(ALICE)])
    held.run(BOB, at(-60))
    for stage in (free, held):
        stage.tick(at(-5))
        stage.unreadable = True
        stage.tick(at(0))

    assert free.open_to() == {ALICE}
    assert held.open_to() == frozenset()

    held.unreadable, held.processes = False, []
    held.tick(at(5))
    assert held.open_to() == {ALICE}


def test_the_ladder_survives_its_way_to_disk_and_a_reboot_drops_what_did_not_survive() -> None:
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(0))])
    stage.tick(at(-5))
    stage.run(ALICE, at(minutes=-30), obeys=False)
    stage.tick(at(0))
    assert stage.ladder.evicting

    after = stage.ladder.after_reboot()

    assert after.rungs == ()
    assert after.enforcing_since == stage.ladder.enforcing_since
    assert after.gates == (GateMark(device=GPU, state=None),)


def test_without_a_plan_gated_devices_close_and_others_stay_as_they_are() -> None:
    stage = Stage(grants=[grant(ALICE)])
    stage.tick(at(0))
    stage.gates["GPU-b"] = GateState(group_open=True)
    job = stage.run(ALICE, at(1))

    stage.grants = []
    stage.plan = PlanState(as_of=None, may_stop=False)
    stage.settings = HostSettings()
    told = stage.ticks(every(30, at(30), at(minutes=20)))

    assert stage.gates == {GPU: GateState(), "GPU-b": GateState(group_open=True)}
    assert stage.alive(job)
    assert told == []


def test_the_next_edge_is_the_first_instant_at_which_time_alone_changes_the_answer() -> None:
    grants = [grant(ALICE), grant(BOB, at(hours=2))]
    nothing = Ladder()

    def edge(now: float, ladder: Ladder = nothing, settings: HostSettings = SETTINGS) -> object:
        return next_edge(grants, ladder=ladder, settings=settings, now=at(now))

    assert edge(-1) == at(0)
    assert edge(0) == at(hours=1)
    assert edge(3600) == at(hours=2)
    assert edge(3 * 3600) is None
    walk_up = msgspec.structs.replace(SETTINGS, unbooked_use="allow")
    assert edge(0, settings=walk_up) == at(hours=1)
    assert edge(3600, settings=walk_up) == at(minutes=105)


def test_a_second_look_with_nothing_changed_plans_nothing() -> None:
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(0)), grant(BOB)])
    stage.tick(at(-5))
    stage.run(ALICE, at(minutes=-30), obeys=False)
    stage.tick(at(0))

    again = plan_actions(
        stage.grants,
        stage.look(),
        ladder=stage.ladder,
        now=at(0),
        settings=stage.settings,
        plan=PlanState(as_of=at(0)),
    )

    assert again.actions == ()
    assert again.ladder == stage.ladder
