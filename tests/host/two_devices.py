"""A host with two real nodes and real processes; gates only remember, and the time is given.

For tests as root of who is found and who is stopped: looking, deciding and acting work together.
"""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from reservations.core.enforcement import DeviceState, HostGrant, Ladder, PlanState
from reservations.core.reconcile import plan_actions
from reservations.core.wire import HostSettings, ProcessUse, Sample
from tests.core.stage import at
from tests.host.scanning import ALICE, FULL, ZERO, make_node
from workers.host.clock import HostClock, boottime_s
from workers.host.gates.record import RecordGate
from workers.host.hands import Hands
from workers.host.holders import HolderScan, Moment, Target
from workers.host.processes import Processes

FIRST, SECOND = "GPU-a", "GPU-b"
SETTINGS = HostSettings(mode="enforce", managed=(FIRST, SECOND))


class Host:
    """``listed``: what the driver says, by device."""

    def __init__(self, folder: Path, processes: Processes, grants: Sequence[HostGrant]) -> None:
        self._grants = grants
        numbers = {FIRST: ZERO, SECOND: FULL}
        self.nodes = {uuid: make_node(folder, uuid, number) for uuid, number in numbers.items()}
        self.listed: dict[str, list[int]] = {}
        self.done: list[str] = []
        self._gate = RecordGate(folder / "gate.json", [FIRST, SECOND])
        self._scan = HolderScan(processes, only_uids=frozenset({ALICE}))
        self._hands = Hands(processes=processes, clock=HostClock(), name_of=lambda uid: None)
        self._ladder = Ladder(enforcing_since=at(hours=-9))

    def tick(self, now: datetime) -> None:
        again = True
        while again:
            decision = plan_actions(
                self._grants,
                self.observe(now),
                ladder=self._ladder,
                now=now,
                settings=SETTINGS,
                plan=PlanState(as_of=now),
            )
            reports, self._ladder = self._hands.act(decision, self._gate)
            self.done += [report.kind for report in reports]
            again = decision.look_again

    def observe(self, now: datetime) -> dict[str, DeviceState]:
        gates = self._gate.observe()
        targets = [
            Target(uuid, (node,), Sample(uuid=uuid, at=now, processes=self._uses(uuid)))
            for uuid, node in self.nodes.items()
        ]
        moment = Moment(now=now, boottime_s=boottime_s())
        found = self._scan.look(targets, moment=moment, may_open=frozenset({ALICE}))
        return {uuid: DeviceState(gate=gates[uuid], holders=found[uuid]) for uuid in found}

    def _uses(self, uuid: str) -> tuple[ProcessUse, ...]:
        return tuple(ProcessUse(pid=pid) for pid in self.listed.get(uuid, ()))
