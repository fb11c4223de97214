"""What must hold of every decision, said a second time and without the agent's own code."""

from datetime import datetime, timedelta

from reservations.core.enforcement import (
    Action,
    Decision,
    EarlySignal,
    HostGrant,
    Kill,
    Ladder,
    PlanState,
    RestoreGate,
    SetGate,
    StopUnit,
    Terminate,
)
from tests.core.stage import Process, Stage

Stop = Terminate | Kill | StopUnit


def moves(decision: Decision) -> list[Action]:
    """The actions that change the host."""
    changing = (SetGate, RestoreGate, EarlySignal, Terminate, StopUnit, Kill)
    return [action for action in decision.actions if isinstance(action, changing)]


class Oracle:
    """Knows the stage as it is at one instant, before a decision is carried out."""

    def __init__(self, stage: Stage, now: datetime) -> None:
        self.stage = stage
        self.now = now
        self.by_pid = {process.pid: process for process in stage.processes}

    def check(self, decision: Decision) -> None:
        """
        Raises:
            AssertionError: The decision wrongs somebody.
        """
        signalled = False
        for action in decision.actions:
            if isinstance(action, SetGate):
                assert not signalled, "gates come before signals"
                self._check_opening(action)
            elif isinstance(action, EarlySignal):
                self._check_early(action)
                told = {fact.id for fact in self.stage.facts}
                assert told.isdisjoint(fact.id for fact in action.facts), "told of one end twice"
            elif isinstance(action, Terminate | Kill | StopUnit):
                signalled = True
                self._check_stop(action, decision.ladder)

    def check_signals(self, decision: Decision) -> int:
        """The same for signals alone; how many there are."""
        stops = [one for one in decision.actions if isinstance(one, Terminate | Kill | StopUnit)]
        for action in stops:
            self._check_stop(action, decision.ladder)
        for early in decision.actions:
            if isinstance(early, EarlySignal):
                self._check_early(early)
        return len(stops)

    def running(self, device: str) -> list[HostGrant]:
        return [
            one
            for one in self.stage.grants
            if one.device == device and one.start <= self.now < one.end
        ]

    def may_be_there(self, process: Process) -> bool:
        return not self._people(process).isdisjoint(
            grant.uid for grant in self.running(process.device)
        )

    def is_spared(self, process: Process) -> bool:
        """Whether nobody may stop it or wait for it, whatever it does."""
        exempt = {*self.stage.settings.exempt_uids, *self.stage.settings.always_open_uids}
        if process.protected is not None or not exempt.isdisjoint(self._people(process)):
            return True
        stops = self.stage.settings.unattributed_containers == "stop"
        nobodys = process.container is not None and not self._members(process)
        return nobodys and not (stops and self.running(process.device))

    def _people(self, process: Process) -> set[int]:
        return self._members(process) or {process.uid}

    def _members(self, process: Process) -> set[int]:
        booking = process.booking
        return {one.uid for one in self.stage.grants if booking and one.booking == booking}

    def _check_stop(self, action: Stop, after: Ladder) -> None:
        gate = self.stage.gates[action.device]
        assert gate is not None
        closed = gate.sound and not gate.group_open and action.uid not in gate.uids
        assert closed, "signalled past an open gate"
        assert action.device not in given_up(after), "the gate is not ours"
        assert action.device in self.stage.settings.managed
        assert self.stage.settings.mode == "enforce"
        plan = self.stage.plan or PlanState(as_of=self.now)
        assert plan.may_stop, "stopped without leave"
        assert plan.complete_until is None or self.now < plan.complete_until
        named = [self.by_pid[pid] for pid in action.pids]
        assert named
        assert {process.device for process in named} == {action.device}
        if isinstance(action, StopUnit):
            assert {process.keeper for process in named} == {action.keeper}
            named = [one for one in self.stage.processes if one.keeper == action.keeper]
        for process in named:
            assert not self.is_spared(process), f"protected: {process}"
            assert not self.may_be_there(process), f"has the right: {process}"
            assert self._is_readable(action.device), "stopped on a guess"

    def _is_readable(self, device: str) -> bool:
        return not (self.stage.unreadable or device in self.stage.unreadable_devices)

    def _check_early(self, action: EarlySignal) -> None:
        """Only for somebody who has the device and asked."""
        for pid in action.pids:
            assert not self.is_spared(self.by_pid[pid]), f"protected: {self.by_pid[pid]}"
            assert action.uid in self._people(self.by_pid[pid])
        assert action.uid in {one.uid for one in self.running(action.device)}
        asked = [
            one
            for one in self.stage.grants
            if one.early_signal and (one.device, one.uid) == (action.device, action.uid)
        ]
        ten_minutes = timedelta(minutes=10)
        assert any(one.end - ten_minutes <= self.now < one.end for one in asked)

    def _let_in_before(self, device: str) -> frozenset[int]:
        """Whom the gate let in as it was last set: nobody is shut out because of an intruder."""
        marks = (mark for mark in self.stage.ladder.gates if mark.device == device)
        return frozenset(uid for mark in marks if mark.state for uid in mark.state.uids)

    def _check_opening(self, action: SetGate) -> None:
        """Nobody new is let in beside somebody who should have left."""
        gate = self.stage.gates[action.device]
        assert gate is not None
        opened = {fact.uid for fact in action.facts if fact.kind == "opened"}
        if opened - gate.uids - self._let_in_before(action.device) and self._is_readable(
            action.device
        ):
            here = (one for one in self.stage.processes if one.device == action.device and one.uses)
            others = [p for p in here if not self.is_spared(p) and not self.may_be_there(p)]
            assert others == [], "let in beside somebody else"


def given_up(ladder: Ladder) -> set[str]:
    return {mark.device for mark in ladder.gates if mark.given_up_at is not None}


def check_gates(stage: Stage, now: datetime) -> None:
    """Whoever may open a device has the right to it, and they are people of one booking."""
    for device in stage.settings.managed:
        gate = stage.gates[device]
        if gate is None or device in given_up(stage.ladder) or stage.settings.mode != "enforce":
            continue
        here = Oracle(stage, now).running(device)
        always = frozenset(stage.settings.always_open_uids)
        let_in = gate.uids - always
        assert let_in <= {one.uid for one in here}, "open to somebody without a right"
        assert len({one.booking for one in here if one.uid in let_in}) <= 1 or len(let_in) == 1
        assert not (gate.group_open and here)
