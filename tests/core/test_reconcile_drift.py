"""A gate that somebody else keeps changing: put right a few times, then left alone, then tried again."""

import msgspec
import pytest

from reservations.core import attention
from reservations.core.drift import QUIET, REPAIRS, TRIAL
from reservations.core.enforcement import EarlySignal, GateMark, GateState, Kill, SetGate, Terminate
from reservations.core.reconcile import next_edge
from tests.core.stage import ALICE, BOB, CAROL, GPU, SETTINGS, Stage, at, every, grant, kinds

OPEN_TO_ALL = GateState(group_open=True, sound=False)
# Such as another agent's list: as sound as ours, and not ours.
ANOTHERS = GateState(uids=frozenset({BOB}))


def fought_over(stage: Stage, *, rival: GateState = OPEN_TO_ALL, from_s: float = 1) -> list[str]:
    """Somebody else writes once a second, until the agent has given up."""
    told = []
    for number in range(REPAIRS + 1):
        stage.gates[GPU] = rival
        told += stage.tick(at(from_s + number))
    return kinds(told)


def held(**fields: object) -> Stage:
    stage = Stage(grants=[grant(ALICE)], **fields)  # type: ignore[arg-type]
    stage.tick(at(0))
    return stage


def test_five_changes_within_a_minute_are_put_right_and_the_sixth_is_left() -> None:
    stage = held()

    assert fought_over(stage) == ["drift"] * 5 + ["drift_given_up"]

    assert stage.gates[GPU] == OPEN_TO_ALL
    (problem,) = attention.problems(stage.ladder)
    assert (problem.code, problem.device) == ("gate_given_up", GPU)


def test_changes_further_apart_are_all_put_right() -> None:
    stage = held()
    told = []
    for number in range(30):
        stage.gates[GPU] = OPEN_TO_ALL
        told += stage.tick(at(13 * number))

    assert kinds(told) == ["drift"] * 30
    assert attention.problems(stage.ladder) == []


def test_that_it_was_given_up_is_told_once_and_nothing_is_set_for_a_while() -> None:
    stage = held()
    fought_over(stage)
    stage.actions.clear()

    told = stage.ticks(every(5, at(7), at(6) + QUIET * 0.99))

    assert told == []
    assert stage.actions == []


@pytest.mark.parametrize("rival", [OPEN_TO_ALL, ANOTHERS])
def test_nobody_is_signalled_while_the_gate_is_not_ours(rival: GateState) -> None:
    """Also where the other one's gate is closed to whoever would be stopped."""
    stage = Stage(grants=[grant(ALICE, at(hours=-1), at(minutes=3), early_signal=True)])
    stage.tick(at(-900))
    stage.run(ALICE, at(-900))
    stage.run(CAROL, at(-60))
    fought_over(stage, rival=rival, from_s=-500)
    stage.actions.clear()

    stage.ticks(every(5, at(-490), at(-495) + QUIET * 0.99))

    for kind in (Terminate, Kill, EarlySignal):
        assert stage.done(kind) == []


def test_it_is_tried_again_after_a_quiet_time_and_works_once_that_lasts() -> None:
    stage = held()
    fought_over(stage)
    given_up_at = at(6)

    edges = [next_edge([], ladder=stage.ladder, settings=SETTINGS, now=given_up_at + TRIAL)]
    assert edges == [given_up_at + QUIET]
    assert stage.tick(given_up_at + QUIET) == []
    assert stage.open_to() == {ALICE}
    assert attention.problems(stage.ladder)

    assert stage.tick(given_up_at + QUIET + TRIAL * 0.9) == []
    (told,) = stage.tick(given_up_at + QUIET + TRIAL)
    assert told.kind == "drift"
    assert "again" in told.text
    assert attention.problems(stage.ladder) == []


def test_a_rival_that_never_stops_is_told_of_once_however_long_it_goes_on() -> None:
    stage = held()
    fought_over(stage)
    stage.actions.clear()
    told = []
    for minute in range(1, 55):
        stage.gates[GPU] = OPEN_TO_ALL
        told += stage.tick(at(minutes=minute))

    assert told == []
    assert len(stage.done(SetGate)) == 5


def test_a_gate_that_stands_as_it_was_last_set_is_moved_on_though_it_was_given_up() -> None:
    """On trial: an end and a start are carried out meanwhile."""
    stage = Stage(grants=[grant(ALICE, at(0), at(30)), grant(BOB, at(30))])
    stage.tick(at(0))
    fought_over(stage)
    stage.gates[GPU] = GateState(uids=frozenset({ALICE}))

    stage.tick(at(30))

    assert stage.ladder.given_up == {GPU}
    assert stage.open_to() == {BOB}


def test_whose_slot_begins_meanwhile_is_told_why_the_device_is_not_opened() -> None:
    stage = Stage(grants=[grant(ALICE, at(60), booking=7)])
    stage.tick(at(0))
    fought_over(stage)

    told = stage.ticks(every(5, at(7), at(120)))

    assert [(fact.kind, fact.booking) for fact in told] == [("delayed", 7)]
    assert "keeps changing" in told[0].text


def test_a_repair_that_leads_to_what_was_wanted_anyway_is_no_drift() -> None:
    stage = held()
    stage.grants = []
    stage.gates[GPU] = GateState()

    assert stage.tick(at(5)) == []


def test_a_gate_that_cannot_be_set_after_the_quiet_time_is_left_alone_again() -> None:
    stage = held()
    fought_over(stage)
    decision = stage.decide(at(6) + QUIET)
    (failed,) = decision.actions
    assert isinstance(failed, SetGate)

    stage.ladder = decision.ladder.without_gate(failed)

    assert stage.decide(at(7) + QUIET).actions == ()


def test_what_was_counted_goes_through_the_form_on_disk_and_a_reboot_forgets_it() -> None:
    stage = held()
    for number in range(3):
        stage.gates[GPU] = OPEN_TO_ALL
        stage.tick(at(1 + number))
    (mark,) = stage.ladder.gates
    assert len(mark.repairs) == 3

    assert stage.ladder.after_reboot().gates == (GateMark(device=GPU, state=None),)


def test_changing_the_mode_ends_the_quarrel() -> None:
    stage = held()
    fought_over(stage)
    stage.settings = msgspec.structs.replace(SETTINGS, mode="observe")

    stage.tick(at(10))

    assert stage.ladder.given_up == frozenset()
