"""Random slots, jobs, drifts and outages: what must hold after every look, whatever happens.

The guards are taken away one at a time as well: a machine that cannot see that would prove nothing.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from unittest.mock import PropertyMock, patch

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

from reservations.core import reconcile, situation, stopping
from reservations.core.enforcement import (
    Action,
    Decision,
    GateState,
    Holder,
    HostGrant,
    Keeper,
    Ladder,
    PlanState,
    SetGate,
    Terminate,
)
from reservations.core.gating import GateCase
from reservations.core.judging import Case
from reservations.core.reconcile import next_edge
from reservations.core.wire import HostSettings
from tests.core.oracle import Oracle, check_gates, moves
from tests.core.stage import ALICE, BOB, CAROL, Process, Stage, at, grant

DEVICES = ("GPU-a", "GPU-b")
PEOPLE = (ALICE, BOB, CAROL)
EXEMPT = 61099
SLOT = timedelta(minutes=1)
BOX = "3f" * 32

devices = st.sampled_from(DEVICES)
people = st.sampled_from(PEOPLE)


class AgentMachine(RuleBasedStateMachine):
    """An agent that looks at every edge, on a host where anybody may do anything in between."""

    @initialize(
        unbooked_use=st.sampled_from(["deny", "allow"]),
        grace_s=st.sampled_from([0.0, 5.0, 60.0]),
        budget=st.sampled_from([1, 8]),
        containers=st.sampled_from(["report", "stop"]),
    )
    def start(self, unbooked_use: str, grace_s: float, budget: int, containers: str) -> None:
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
                unattributed_containers=containers,  # type: ignore[arg-type]
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

    @rule(device=devices, uid=people, both=st.booleans(), claimed=st.booleans())
    def run_unit(self, device: str, uid: int, both: bool, claimed: bool) -> None:
        """A unit that starts its processes again: a service, or a container of the last booking."""
        name = BOX if claimed else f"of-{uid}.service"
        keeper = Keeper(engine="docker" if claimed else "systemd", name=name)
        for where in DEVICES if both else (device,):
            self.stage.run(
                uid,
                self.now,
                device=where,
                keeper=keeper,
                container=BOX if claimed else None,
                booking=self.bookings if claimed else None,
            )

    @rule(device=devices, uid=people)
    def begin_with_a_unit_on_both(self, device: str, uid: int) -> None:
        """Somebody whose service uses one device more than was booked."""
        self.book(device, {uid}, 3, early=False)
        self.run_unit(device, uid, both=True, claimed=False)

    @rule(device=devices, uid=people)
    def begin_with_a_container(self, device: str, uid: int) -> None:
        """Of a booking, whose processes run as somebody else."""
        self.book(device, {uid}, 3, early=False)
        self.run_unit(device, 0, both=False, claimed=True)

    @rule(device=devices, letter=st.sampled_from("ab"))
    def run_box(self, device: str, letter: str) -> None:
        """A container that was started for nobody, as root."""
        self.stage.run(0, self.now, device=device, container=letter * 64, obeys=False)

    @rule(works=st.booleans())
    def managers(self, works: bool) -> None:
        self.stage.managers_work = works

    @rule(device=devices, times=st.sampled_from([2, 6]), sound=st.booleans())
    def quarrel(self, device: str, times: int, sound: bool) -> None:
        """Somebody else writes to the gate again and again."""
        for _ in range(times):
            self.drift(device, ALICE, sound)

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

    @rule(device=devices, uid=people, sound=st.booleans())
    def drift(self, device: str, uid: int, sound: bool) -> None:
        """Somebody else writes to the gate, also as we would."""
        self.stage.gates[device] = GateState(uids=frozenset({uid}), sound=sound)
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
            decision = self.decide(self.now)
            Oracle(self.stage, self.now).check(decision)
            self.stage.take(decision, self.now)
            signals = {(type(a), p) for a in moves(decision) for p in getattr(a, "pids", ())}
            assert sent.isdisjoint(signals)
            sent |= signals
            if not decision.actions:
                assert decision.ladder == self.stage.ladder
                return
        raise AssertionError("never comes to rest")

    def decide(self, now: datetime) -> Decision:
        return self.stage.decide(now)

    @invariant()
    def only_those_with_a_right_may_open(self) -> None:
        if hasattr(self, "stage"):
            check_gates(self.stage, self.now)

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


def early(case: GateCase) -> GateState:
    """Opens to the next person whoever is still there."""
    wanted: GateState = WANTED(replace(case, foreign=frozenset()))
    return wanted


def with_a_closed_gate(case: Case, *rest: object) -> bool:
    """Signals without having seen the gate closed."""
    return MAY_SIGNAL(replace(case, gate=GateState()), *rest)  # type: ignore[arg-type]


def as_anybody(process: Process) -> Holder:
    """Takes nobody for protected."""
    return msgspec.structs.replace(AS_HOLDER(process), protected=None)


def every_unit(world: object, cases: list[Case]) -> frozenset[Keeper]:
    """Stops units whatever else they serve."""
    return frozenset(one.keeper for case in cases for one in case.holders if one.keeper)


WANTED = GateCase.wanted.fget  # type: ignore[attr-defined]
AS_HOLDER = Process.as_holder
MAY_SIGNAL = stopping.may_signal
GUARDS = {
    "waiting until the others have left": (
        patch.object(GateCase, "wanted", property(early)),
        "let in beside somebody else",
    ),
    "closing before signalling": (
        patch.object(stopping, "may_signal", with_a_closed_gate),
        "past an open gate|not ours",
    ),
    "sparing the exempt": (
        patch.object(situation.World, "spares", lambda world, holder: False),
        "protected",
    ),
    "sparing the protected": (patch.object(Process, "as_holder", as_anybody), "protected"),
    "containers are their booking's": (
        patch.object(situation.World, "_members_of", lambda world, holder: frozenset()),
        "has the right|let in beside somebody else|protected",
    ),
    "tolerating containers": (
        patch.object(situation, "_tolerates_containers", lambda due, settings: False),
        "protected",
    ),
    "whole units only": (
        patch.object(reconcile, "_units_to_stop", every_unit),
        "has the right|protected",
    ),
    "leaving gates alone": (
        patch.object(Ladder, "given_up", PropertyMock(return_value=frozenset())),
        "not ours",
    ),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_an_agent_without_one_of_its_guards_is_found(guard: str) -> None:
    taken_away, wrong = GUARDS[guard]
    with taken_away, pytest.raises(AssertionError, match=wrong):
        run_state_machine_as_test(AgentMachine, settings=SABOTAGE)
