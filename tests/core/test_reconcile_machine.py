"""Random slots, jobs, drifts and outages: what must hold after every look, whatever happens.

The guards are taken away one at a time as well: a machine that cannot see that would prove nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reservations.core.enforcement import (
    Action,
    Decision,
    EarlySignal,
    GateState,
    HostGrant,
    Kill,
    PlanState,
    SetGate,
    Terminate,
)
from reservations.core.gating import GateCase
from reservations.core.reconcile import next_edge
from reservations.core.wire import HostSettings
from tests.core.stage import ALICE, BOB, CAROL, Process, Stage, at, grant

DEVICES = ("GPU-a", "GPU-b")
PEOPLE = (ALICE, BOB, CAROL)
EXEMPT = 61099
SLOT = timedelta(minutes=1)

devices = st.sampled_from(DEVICES)
people = st.sampled_from(PEOPLE)


def moves(decision: Decision) -> list[Action]:
    """The actions that change the host."""
    return [a for a in decision.actions if isinstance(a, (SetGate, EarlySignal, Terminate, Kill))]


class AgentMachine(RuleBasedStateMachine):
    """An agent that looks at every edge, on a host where anybody may do anything in between."""

    @initialize(
        unbooked_use=st.sampled_from(["deny", "allow"]),
        grace_s=st.sampled_from([0.0, 5.0, 60.0]),
        budget=st.sampled_from([1, 8]),
    )
    def start(self, unbooked_use: str, grace_s: float, budget: int) -> None:
        self.now = at(0)
        self.bookings = 0
        self.stage = Stage(
            settings=HostSettings(
                mode="enforce",
                managed=DEVICES,
                unbooked_use=unbooked_use,  # type: ignore[arg-type]
                grace_s=grace_s,
                intruder_grace_s=10,
                kill_budget=budget,
                exempt_uids=(EXEMPT,),
            )
        )
        self.protected = self.stage.run(0, at(hours=-9), protected="root", device="GPU-a")
        self.exempt = self.stage.run(EXEMPT, at(hours=-9), device="GPU-b")
        self.look()

    @rule(
        device=devices,
        who=st.sets(people, min_size=1, max_size=2),
        slots=st.integers(1, 4),
        early=st.booleans(),
    )
    def book(self, device: str, who: set[int], slots: int, early: bool) -> None:
        """The next free slot on the device, back to back with the last one."""
        self.bookings += 1
        start = max([self.now, *(g.end for g in self.stage.grants if g.device == device)])
        self.stage.grants += [
            grant(
                uid,
                start,
                start + SLOT * slots,
                booking=self.bookings,
                device=device,
                early_signal=early,
            )
            for uid in sorted(who)
        ]
        self.look()

    @precondition(lambda self: self.running())
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        booking = data.draw(st.sampled_from(sorted({g.booking for g in self.running()})))
        self.stage.grants = [
            msgspec.structs.replace(g, end=self.now) if g.booking == booking else g
            for g in self.stage.grants
        ]
        self.stage.grants = [g for g in self.stage.grants if g.start < g.end]
        self.look()

    @rule(
        device=devices,
        uid=people,
        obeys=st.booleans(),
        mortal=st.integers(0, 9),
        by_force=st.booleans(),
    )
    def run_job(self, device: str, uid: int, obeys: bool, mortal: int, by_force: bool) -> None:
        """Through the open gate, or with a descriptor that was passed past a closed one."""
        gate = self.stage.gates[device]
        if by_force or (gate is not None and (gate.group_open or uid in gate.uids)):
            self.stage.run(uid, self.now, device=device, obeys=obeys, mortal=mortal > 0)

    @rule(device=devices, uid=people)
    def begin_a_long_one(self, device: str, uid: int) -> None:
        """Somebody who has asked for the early signal, and is there when it is due."""
        self.book(device, {uid}, 11, early=True)
        self.run_job(device, uid, obeys=True, mortal=1, by_force=False)

    @rule(device=devices, uid=people)
    def leave(self, device: str, uid: int) -> None:
        self.stage.processes = [
            p for p in self.stage.processes if (p.device, p.uid) != (device, uid)
        ]

    @rule(device=devices, uid=people)
    def drift(self, device: str, uid: int) -> None:
        """Somebody else writes to the gate."""
        self.stage.gates[device] = GateState(uids=frozenset({uid}), sound=False)
        self.look()

    @rule(lost=st.booleans())
    def readings(self, lost: bool) -> None:
        self.stage.unreadable = lost

    @rule(age_s=st.sampled_from([None, 0, 30, 300]))
    def network(self, age_s: int | None) -> None:
        """None: connected; else the plan is so old and stays so."""
        old = None if age_s is None else PlanState(as_of=self.now - timedelta(seconds=age_s))
        self.stage.plan = old

    @rule(seconds=st.sampled_from([0.3, 5, 11, 61, 200]))
    def wait(self, seconds: float) -> None:
        """Time goes on, and the agent looks at each of its edges and every five seconds."""
        until = self.now + timedelta(seconds=seconds)
        while self.now < until:
            edge = next_edge(
                self.stage.grants,
                ladder=self.stage.ladder,
                settings=self.stage.settings,
                now=self.now,
            )
            self.now = min(until, edge or until, self.now + timedelta(seconds=5))
            self.look()

    def running(self) -> list[HostGrant]:
        return [g for g in self.stage.grants if g.start <= self.now < g.end]

    def look(self) -> None:
        """Look and act until there is nothing to do at this instant; nobody hears a signal twice."""
        sent = set[tuple[type[Action], int]]()
        for _ in range(8):
            before = list(self.stage.processes)
            decision = self.decide(self.now)
            self.check(decision, before)
            self.carry_out(decision)
            signals = {(type(a), p) for a in moves(decision) for p in getattr(a, "pids", ())}
            assert sent.isdisjoint(signals)
            sent |= signals
            if not moves(decision):
                return
        raise AssertionError("never comes to rest")

    def decide(self, now: datetime) -> Decision:
        return self.stage.decide(now)

    def carry_out(self, decision: Decision) -> None:
        """The stage's own way of acting, on this decision."""
        with patch.object(self.stage, "decide", return_value=decision):
            self.stage.once(self.now)

    def check(self, decision: Decision, processes: list[Process]) -> None:
        by_pid = {p.pid: p for p in processes}
        current = {(g.device, g.uid) for g in self.running()}
        signalled = False
        for action in decision.actions:
            if isinstance(action, SetGate):
                assert not signalled
                self.check_opening(action, processes)
            if isinstance(action, EarlySignal):
                self.check_early(action, by_pid)
            if not isinstance(action, (Terminate, Kill)):
                continue
            signalled = True
            named = [by_pid[pid] for pid in action.pids]
            assert all(p.protected is None and p.uid != EXEMPT for p in named)
            assert all((p.device, p.uid) not in current for p in named)
            assert all((p.device, p.uid) == (action.device, action.uid) for p in named)
            assert not self.stage.unreadable
            gate = self.stage.gates[action.device]
            assert gate is not None
            assert not gate.group_open
            assert action.uid not in gate.uids

    def check_early(self, action: EarlySignal, by_pid: dict[int, Process]) -> None:
        """Only for somebody who has the device and asked, and is told of each end once."""
        named = [by_pid[pid] for pid in action.pids]
        assert all(p.protected is None and p.uid == action.uid for p in named)
        asked = [
            g
            for g in self.stage.grants
            if g.early_signal and (g.device, g.uid) == (action.device, action.uid)
        ]
        assert any(g.end - timedelta(minutes=10) <= self.now < g.end for g in asked)
        assert (action.device, action.uid) in {(g.device, g.uid) for g in self.running()}
        told = [fact.id for fact in self.stage.facts]
        assert all(fact.id not in told for fact in action.facts)

    @invariant()
    def only_those_with_a_right_may_open(self) -> None:
        if not hasattr(self, "stage"):
            return
        for device, gate in self.stage.gates.items():
            assert gate is not None
            here = [g for g in self.running() if g.device == device]
            assert gate.uids <= {g.uid for g in here}
            assert len({g.booking for g in here if g.uid in gate.uids}) <= 1 or len(gate.uids) == 1
            assert not (gate.group_open and here)

    def check_opening(self, action: SetGate, processes: list[Process]) -> None:
        """Nobody new is let in beside somebody who should have left."""
        gate = self.stage.gates[action.device]
        assert gate is not None
        opened = {fact.uid for fact in action.facts if fact.kind == "opened"}
        if opened - gate.uids and not self.stage.unreadable:
            here = {g.uid for g in self.running() if g.device == action.device} | {EXEMPT}
            others = [p for p in processes if p.device == action.device and p.uid not in here]
            assert [p for p in others if p.protected is None] == []

    @invariant()
    def the_protected_live(self) -> None:
        if hasattr(self, "stage"):
            assert self.protected in self.stage.processes
            assert self.exempt in self.stage.processes


MACHINE = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def test_whatever_happens_nobody_is_wronged() -> None:
    run_state_machine_as_test(AgentMachine, settings=MACHINE)


# To find that a guard is missing is enough; the smallest way to show it takes long.
SABOTAGE = settings(MACHINE, phases=(Phase.generate,), max_examples=2000)


def without_closing(decision: Decision) -> Decision:
    def closes(action: Action) -> bool:
        return isinstance(action, SetGate) and not any(f.kind == "opened" for f in action.facts)

    return msgspec.structs.replace(
        decision, actions=tuple(a for a in decision.actions if not closes(a)), look_again=False
    )


def signalling_at_first_sight(decision: Decision) -> Decision:
    extra = tuple(
        Terminate(device=rung.device, uid=rung.uid, pids=rung.pids)
        for rung in decision.ladder.rungs
        if rung.signalled_at is None and rung.pids
    )
    return msgspec.structs.replace(decision, actions=(*decision.actions, *extra))


@pytest.mark.parametrize("sabotage", [without_closing, signalling_at_first_sight])
def test_a_decision_with_a_step_taken_out_or_put_in_is_found(
    sabotage: Callable[[Decision], Decision],
) -> None:
    class Sabotaged(AgentMachine):
        def decide(self, now: datetime) -> Decision:
            return sabotage(super().decide(now))

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Sabotaged, settings=SABOTAGE)


def test_opening_a_gate_before_the_others_have_left_is_found() -> None:
    wanted = GateCase.wanted

    def early(case: GateCase) -> GateState:
        return wanted.fget(replace(case, foreign=frozenset()))  # type: ignore[attr-defined]

    with patch.object(GateCase, "wanted", property(early)), pytest.raises(AssertionError):
        run_state_machine_as_test(AgentMachine, settings=SABOTAGE)
