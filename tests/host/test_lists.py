"""Process lists of a driver that are garbage: nobody is signalled, and the list is called unreadable."""

import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reservations.core.wire import DeviceInfo, HealthProblem, ProcessUse, Sample
from tests.host.clocks import Hands
from tests.host.people import Child, child
from tests.host.scanning import ALICE, BOB, GIB, GPU, NOW, found, holding, idle, look, sample
from workers.host.gates.record import RecordGate
from workers.host.ghosts import ORPHANED_AFTER
from workers.host.holders import HolderScan
from workers.host.lookout import Lookout, Sight
from workers.host.names import Names, SystemUsers
from workers.host.processes import Processes
from workers.host.readings import Readings

pytestmark = pytest.mark.root
MEMORY = 314_572_800


def died() -> int:
    gone = Child(ALICE, idle)
    os.kill(gone.pid, signal.SIGKILL)
    gone.reap()
    return gone.pid


GARBAGE: dict[str, Callable[[int, int], Sequence[ProcessUse]]] = {
    "pid 0": lambda job, innocent: [ProcessUse(pid=0)],
    "all bits": lambda job, innocent: [ProcessUse(pid=2**32 - 1)],
    "pid and memory swapped": lambda job, innocent: [ProcessUse(pid=MEMORY, memory_bytes=job)],
    "swapped, to a pid that there is": lambda job, innocent: [
        ProcessUse(pid=innocent, memory_bytes=job)
    ],
    "the first process": lambda job, innocent: [ProcessUse(pid=1)],
    "the agent itself": lambda job, innocent: [ProcessUse(pid=os.getpid())],
    "the agent's parent": lambda job, innocent: [ProcessUse(pid=os.getppid())],
    "a pid of another namespace": lambda job, innocent: [ProcessUse(pid=innocent)],
    "mostly so": lambda job, innocent: [
        ProcessUse(pid=pid) for pid in (job, 0, 2**32 - 1, innocent)
    ],
    "beyond any number": lambda job, innocent: [ProcessUse(pid=2**63 - 1)],
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_a_list_of_garbage_is_unreadable_and_nobody_can_be_signalled(
    scan: HolderScan, processes: Processes, node: str, kind: str
) -> None:
    with child(ALICE, holding(node)) as job, child(BOB, idle) as innocent:
        listed = GARBAGE[kind](job.pid, innocent.pid)
        reading = Sample(uuid=GPU, at=NOW, processes=tuple(listed))

        assert look(scan, node, reading) is None
        assert [(one.code, one.device) for one in scan.problems()] == [("process_list", GPU)]
        assert list(scan.unreadable) == [GPU]
        everybody = [job.pid, innocent.pid, os.getpid(), os.getppid(), *(p.pid for p in listed)]
        assert processes.terminate(everybody) == ()
        assert processes.kill(everybody) == ()
        assert not job.ended()
        assert not innocent.ended()


def test_a_list_that_is_right_again_is_believed_again(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as job:
        assert look(scan, node, sample(0)) is None
        assert found(look(scan, node, sample(job.pid))) == {job.pid: True}
        assert scan.problems() == []


def test_one_bad_entry_is_dropped_and_logged(
    scan: HolderScan, processes: Processes, node: str, caplog: pytest.LogCaptureFixture
) -> None:
    with child(ALICE, holding(node)) as job:
        assert found(look(scan, node, sample(job.pid, 2**32 - 1))) == {job.pid: True}
        assert "4294967295" in caplog.text
        assert scan.problems() == []
        assert processes.kill([0, 2**32 - 1]) == ()


def test_dead_pids_alone_say_that_nobody_is_there(scan: HolderScan, node: str) -> None:
    assert look(scan, node, sample(died(), died())) == ()
    assert scan.problems() == []


def test_the_agents_own_handle_on_the_device_is_no_garbage_and_protected(
    processes: Processes, node: str
) -> None:
    """A vendor's library keeps every device open."""
    handle = os.open(node, os.O_RDWR)
    try:
        scan = HolderScan(processes, only_uids=frozenset({ALICE}))
        (own,) = look(scan, node, sample(os.getpid())) or ()
        assert own.protected == "the agent's own tree"
    finally:
        os.close(handle)


class OneCard:
    """A vendor whose device reads as a test says."""

    name = "one"
    lists_processes = True
    trusts_uids = False

    def __init__(self, reading: Sample) -> None:
        self._reading = reading

    def devices(self) -> tuple[DeviceInfo, ...]:
        return ()

    def sample(self, uuid: str) -> Sample:
        return self._reading

    def problems(self) -> list[HealthProblem]:
        return []

    def close(self) -> None:
        pass


class Watch:
    """A lookout over one device, whose clock a test moves."""

    def __init__(self, card: OneCard, scan: HolderScan, processes: Processes, folder: Path) -> None:
        self.hands = Hands()
        clock = self.hands.clock()
        self.lookout = Lookout(
            vendor=card,
            readings=Readings(card, clock),
            processes=processes,
            names=Names(SystemUsers()),
            clock=clock,
            scan=scan,
        )
        self._gate = RecordGate(folder / "gate.json", [GPU])

    def look(self, node: str) -> Sight:
        device = DeviceInfo(uuid=GPU, vendor="one", index=0, model="Card", node_paths=(node,))
        return self.lookout.look([device], self._gate, full=True)


def test_a_list_that_is_not_believed_is_shown_to_nobody(
    scan: HolderScan, processes: Processes, node: str, tmp_path: Path
) -> None:
    watch = Watch(OneCard(sample(0, 2**32 - 1)), scan, processes, tmp_path)

    sight = watch.look(node)

    assert sight.observed[GPU].holders is None
    assert sight.samples[GPU].processes is None
    assert [one.code for one in watch.lookout.problems()] == ["process_list"]


def test_a_device_that_works_for_nobody_is_said_to_with_its_reading(
    scan: HolderScan, processes: Processes, node: str, tmp_path: Path
) -> None:
    card = OneCard(sample(used_bytes=32 * GIB, busy_percent=100))
    watch = Watch(card, scan, processes, tmp_path)

    assert not watch.look(node).samples[GPU].haunted
    watch.hands.pass_time(ORPHANED_AFTER.total_seconds())

    assert watch.look(node).samples[GPU].haunted
    assert [one.code for one in watch.lookout.problems()] == ["ghost_use"]
