"""A person whose slot on one device ends while hers on another goes on, with real nodes and processes."""

import signal
from datetime import datetime
from pathlib import Path

import pytest

from reservations.core.enforcement import DeviceState, Ladder, PlanState
from reservations.core.reconcile import plan_actions
from reservations.core.wire import HostSettings, ProcessUse, Sample
from tests.core.stage import at, grant
from tests.host.people import child
from tests.host.scanning import ALICE, FULL, ZERO, holding, make_node
from workers.host.clock import HostClock, boottime_s
from workers.host.gates.record import RecordGate
from workers.host.hands import Hands
from workers.host.holders import HolderScan, Moment, Target
from workers.host.processes import Processes

pytestmark = pytest.mark.root
FIRST, SECOND = "GPU-a", "GPU-b"
SETTINGS = HostSettings(mode="enforce", managed=(FIRST, SECOND))
GRANTS = [
    grant(ALICE, booking=1, device=FIRST),
    grant(ALICE, end=at(hours=5), booking=2, device=SECOND),
]


class Host:
    """Gates only remember here: what counts is who is found, and who is signalled."""

    def __init__(self, folder: Path, processes: Processes) -> None:
        numbers = {FIRST: ZERO, SECOND: FULL}
        self.nodes = {uuid: make_node(folder, uuid, number) for uuid, number in numbers.items()}
        self.listed: dict[str, list[int]] = {}
        self._gate = RecordGate(folder / "gate.json", [FIRST, SECOND])
        self._scan = HolderScan(processes, only_uids=frozenset({ALICE}))
        self._hands = Hands(processes=processes, clock=HostClock(), name_of=lambda uid: None)
        self._ladder = Ladder(enforcing_since=at(hours=-9))

    def tick(self, now: datetime) -> None:
        again = True
        while again:
            decision = plan_actions(
                GRANTS,
                self._observed(now),
                ladder=self._ladder,
                now=now,
                settings=SETTINGS,
                plan=PlanState(as_of=now),
            )
            _, self._ladder = self._hands.act(decision, self._gate)
            again = decision.look_again

    def _observed(self, now: datetime) -> dict[str, DeviceState]:
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


@pytest.fixture
def host(tmp_path: Path, processes: Processes) -> Host:
    return Host(tmp_path, processes)


def test_only_those_on_the_device_whose_slot_has_ended_are_stopped(host: Host) -> None:
    host.tick(at(0))
    with (
        child(ALICE, holding(host.nodes[FIRST])) as ended,
        child(ALICE, holding(host.nodes[SECOND])) as going_on,
    ):
        host.listed = {FIRST: [ended.pid], SECOND: [going_on.pid]}
        host.tick(at(minutes=30))
        assert not ended.ended()

        host.tick(at(hours=1))

        assert ended.reap() == signal.SIGTERM
        assert not going_on.ended()


def test_a_process_with_both_devices_open_is_stopped_for_the_one_it_may_use_no_longer(
    host: Host,
) -> None:
    """CUDA opens every device it can see; what counts is the one whose list it is on."""
    host.tick(at(0))
    both = (host.nodes[FIRST], host.nodes[SECOND])
    with child(ALICE, holding(*both)) as going_on, child(ALICE, holding(*both)) as ended:
        host.listed = {FIRST: [ended.pid], SECOND: [going_on.pid]}

        host.tick(at(hours=1))

        assert ended.reap() == signal.SIGTERM
        assert not going_on.ended()
