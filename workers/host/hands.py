"""Does what was decided, in order, and turns what was done into reports."""

import logging
from collections.abc import Callable
from datetime import datetime

from reservations.core.enforcement import (
    Action,
    Decision,
    EarlySignal,
    Fact,
    Kill,
    Ladder,
    RestoreGate,
    SetGate,
    StopUnit,
    Terminate,
)
from reservations.core.leases import Leases
from reservations.core.wire import MAX_TEXT, HealthProblem, Report
from workers.host.clock import HostClock
from workers.host.gates.base import Gate, GateError
from workers.host.processes import Processes
from workers.host.units import UnitStops

logger = logging.getLogger(__name__)


class Hands:
    """For one thread, the agent's."""

    def __init__(
        self,
        *,
        processes: Processes,
        clock: HostClock,
        name_of: Callable[[int], str | None],
    ) -> None:
        self._processes = processes
        self._clock = clock
        self._name_of = name_of
        self._units = UnitStops()
        self._failures: list[HealthProblem] = []
        self._unlent: list[HealthProblem] = []

    def problems(self) -> list[HealthProblem]:
        """What the last round could not do, and which units still run that were to be stopped."""
        return [*self._failures, *self._unlent, *self._units.problems()]

    def lend(self, leases: Leases, gate: Gate, *, now: datetime) -> None:
        """Before `act`, so that whoever is let in there is let in for as long as the grant lasts."""
        self._unlent = []
        try:
            gate.lend(leases, now)
        except GateError as error:
            logger.error("leases: %s", error)  # noqa: TRY400 -- the text says it all
            self._unlent.append(HealthProblem(code="action_failed", text=str(error)[:MAX_TEXT]))

    def act(self, decision: Decision, gate: Gate) -> tuple[list[Report], Ladder]:
        """The reports of what was done, and what to remember. One failure stops no other action."""
        self._failures = []
        self._units.keep_only({rung.device for rung in decision.ladder.rungs})
        reports: list[Report] = []
        ladder = decision.ladder
        for action in decision.actions:
            try:
                self._do(action, gate)
            except (GateError, OSError) as error:
                ladder = self._failed(action, error, ladder)
            else:
                at = self._clock.now()
                reports += [self._report(fact, at=at) for fact in action.facts]
        return reports, ladder

    def _do(self, action: Action, gate: Gate) -> None:
        match action:
            case SetGate():
                gate.set(action.device, action.uids, group_open=action.group_open)
            case RestoreGate():
                gate.restore(action.device)
            case EarlySignal():
                self._processes.signal_early(action.pids)
            case Terminate():
                self._processes.terminate(action.pids)
            case StopUnit():
                self._units.stop(action.keeper, device=action.device, grace_s=action.grace_s)
            case Kill():
                self._processes.kill(action.pids)

    def _failed(self, action: Action, error: Exception, ladder: Ladder) -> Ladder:
        logger.error("action failed: %s: %s", action, error)
        device = getattr(action, "device", None)
        text = f"{type(action).__name__}: {error}"[:MAX_TEXT]
        self._failures.append(HealthProblem(code="action_failed", text=text, device=device))
        if isinstance(action, SetGate | RestoreGate):
            return ladder.without_gate(action)
        return ladder

    def _report(self, fact: Fact, *, at: datetime) -> Report:
        return Report(
            id=fact.id,
            at=at,
            kind=fact.kind,
            device=fact.device,
            booking=fact.booking,
            unix_name=self._name_of(fact.uid) if fact.uid is not None else None,
            uid=fact.uid,
            pids=fact.pids,
            latency_s=fact.latency_s(at),
            text=fact.text[:MAX_TEXT],
        )
