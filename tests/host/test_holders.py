"""Who holds a device: real descriptors on the real kernel, and lists that may be wrong."""

import ctypes
import os
import signal
import stat
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from reservations.core.wire import ProcessUse, Sample
from tests.host.people import Child, child, reusing, wait_for_ever
from tests.host.scanning import (
    ALICE,
    BOB,
    FULL,
    GIB,
    GPU,
    NOW,
    ZERO,
    ask_to_open,
    found,
    holding,
    holding_on_request,
    idle,
    look,
    make_node,
    sample,
)
from tests.waiting import until
from workers.host.clock import boottime_s
from workers.host.ghosts import ORPHANED_AFTER
from workers.host.holders import HolderScan, Moment, Target
from workers.host.processes import Processes

pytestmark = pytest.mark.root


def test_a_listed_process_with_the_device_open_is_a_holder(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as one, child(ALICE, idle):
        (holder,) = look(scan, node, sample(one.pid)) or ()

        assert (holder.pid, holder.uid, holder.uids) == (one.pid, ALICE, (ALICE, ALICE))
        assert (holder.uses, holder.protected) == (True, None)
        assert os.getpid() in holder.ancestors
        assert abs(holder.started - NOW) < timedelta(seconds=10)


def test_an_open_descriptor_alone_is_not_use(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as monitor, child(BOB, holding(node)) as job:
        assert found(look(scan, node, sample(job.pid))) == {monitor.pid: False, job.pid: True}


def test_where_the_vendor_has_no_lists_the_descriptor_counts(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as one:
        assert found(look(scan, node, None, lists_processes=False)) == {one.pid: True}


def test_a_list_that_could_not_be_read_says_nothing(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)):
        assert look(scan, node, None) is None
        assert look(scan, node, Sample(uuid=GPU, at=NOW, processes=None)) is None


def test_drawing_alone_is_not_use(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as desktop:
        reading = Sample(
            uuid=GPU, at=NOW, processes=(ProcessUse(pid=desktop.pid, graphics_only=True),)
        )
        assert found(look(scan, node, reading)) == {desktop.pid: False}


def test_a_listed_pid_that_is_no_process_is_left_out(scan: HolderScan, node: str) -> None:
    """It has ended since, or there never was one."""
    with child(ALICE, holding(node)) as one:
        gone = Child(ALICE, idle)
        os.kill(gone.pid, signal.SIGKILL)
        gone.reap()

        assert found(look(scan, node, sample(one.pid, gone.pid, 0))) == {one.pid: True}


def test_a_list_that_is_garbage_for_the_most_part_says_nothing(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as one:
        assert look(scan, node, sample(one.pid, 0, 2**32 - 1, 314_572_800)) is None


def test_a_listed_process_without_the_device_is_not_believed(scan: HolderScan, node: str) -> None:
    """The driver may mean a process of another namespace by that number."""
    with child(ALICE, idle) as innocent, child(BOB, holding(node)) as one:
        assert found(look(scan, node, sample(innocent.pid, one.pid))) == {one.pid: True}
        assert look(scan, node, sample(innocent.pid)) is None


def test_the_device_is_found_under_any_name(scan: HolderScan, node: str, tmp_path: Path) -> None:
    other = tmp_path / "a name of their own"
    os.mknod(other, stat.S_IFCHR | 0o666, ZERO)
    other.chmod(0o666)
    with child(ALICE, holding(str(other))) as one:
        assert found(look(scan, node, sample(one.pid))) == {one.pid: True}


def test_a_pid_that_was_clean_and_is_somebody_elses_now_is_looked_at(
    scan: HolderScan, node: str
) -> None:
    """The closed gate lets nobody open it, so that nobody would be looked at again but for that."""
    first = Child(ALICE, idle)
    assert look(scan, node, sample()) == ()
    os.kill(first.pid, signal.SIGKILL)
    first.reap()
    second = reusing(first.pid, ALICE, holding(node))
    try:
        assert found(look(scan, node, sample())) == {second.pid: False}
    finally:
        os.kill(second.pid, signal.SIGKILL)
        second.reap()


def test_the_holders_of_one_device_are_not_those_of_another(
    scan: HolderScan, node: str, tmp_path: Path
) -> None:
    """Alice's slot on one ends while hers on the other goes on."""
    other = make_node(tmp_path, "nvidia1", FULL)
    with child(ALICE, holding(node)) as first, child(ALICE, holding(other)) as second:
        targets = [
            Target(device=GPU, node_paths=(node,), sample=sample(first.pid)),
            Target(device="GPU-b", node_paths=(other,), sample=sample(second.pid, device="GPU-b")),
        ]
        seen = scan.look(
            targets, moment=Moment(now=NOW, boottime_s=boottime_s()), may_open=frozenset()
        )

        assert found(seen[GPU]) == {first.pid: True}
        assert found(seen["GPU-b"]) == {second.pid: True}


def test_an_instance_is_held_through_nodes_of_another_kind(
    scan: HolderScan, tmp_path: Path
) -> None:
    """The capabilities of an instance have a major number of their own."""
    instance = make_node(tmp_path, "nvidia-cap12", FULL)
    compute = make_node(tmp_path, "nvidia-cap13", os.makedev(10, 229))
    with child(ALICE, holding(compute)) as one, child(BOB, idle):
        target = Target(device=GPU, node_paths=(instance, compute), sample=sample(one.pid))
        moment = Moment(now=NOW, boottime_s=boottime_s())

        assert found(scan.look([target], moment=moment, may_open=None)[GPU]) == {one.pid: True}


def test_a_setuid_program_belongs_to_the_person_who_runs_it(
    processes: Processes, node: str
) -> None:
    def as_root_for_alice(ready: Callable[[], None]) -> None:
        os.open(node, os.O_RDWR)
        ready()
        wait_for_ever()

    made = Child(0, lambda ready: (os.setreuid(ALICE, 0), as_root_for_alice(ready)))
    try:
        # A root process is only looked at when its list entry leads there: it may open everything.
        holders = look(HolderScan(processes, only_uids=frozenset({ALICE})), node, sample(made.pid))
        assert holders
        assert (holders[0].uid, holders[0].uids) == (ALICE, (ALICE, 0))
        assert holders[0].protected is None
    finally:
        os.kill(made.pid, signal.SIGKILL)
        made.reap()


def test_workers_below_a_listed_process_use_the_device_too(scan: HolderScan, node: str) -> None:
    def parent(ready: Callable[[], None]) -> None:
        os.open(node, os.O_RDWR)
        if os.fork() == 0:
            ready()
            wait_for_ever()
        wait_for_ever()

    with child(ALICE, parent) as one:
        holders = look(scan, node, sample(one.pid)) or ()

        assert [holder.uses for holder in holders] == [True, True]
        (worker,) = (holder for holder in holders if holder.pid != one.pid)
        assert worker.ancestors[0] == one.pid


def test_memory_that_stays_without_a_process_makes_the_descriptors_count(
    scan: HolderScan, node: str
) -> None:
    """Orphaned workers are in no list, and keep the memory of the process that is gone."""
    with child(ALICE, holding(node)) as worker:
        gone = Child(ALICE, idle)
        os.kill(gone.pid, signal.SIGKILL)
        gone.reap()
        reading = sample(gone.pid, used_bytes=40 * GIB)

        assert found(look(scan, node, reading)) == {worker.pid: False}
        assert found(look(scan, node, reading, at=ORPHANED_AFTER)) == {worker.pid: True}


@pytest.mark.parametrize(
    ("used_bytes", "reserved"), [(32 * 2**20, 0), (GIB, None), (None, 0)], ids=str
)
def test_a_little_memory_is_the_drivers_own(
    scan: HolderScan, node: str, used_bytes: int | None, reserved: int | None
) -> None:
    with child(ALICE, holding(node)) as monitor:
        reading = sample(used_bytes=used_bytes, reserved=reserved)
        look(scan, node, reading)

        later = look(scan, node, reading, at=ORPHANED_AFTER * 2)
        assert found(later) == {monitor.pid: False}


def test_memory_that_is_freed_in_time_makes_nobody_a_user(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as monitor:
        look(scan, node, sample(used_bytes=40 * GIB))
        look(scan, node, sample(used_bytes=0), at=timedelta(seconds=1))

        again = look(scan, node, sample(used_bytes=40 * GIB), at=ORPHANED_AFTER * 2)
        assert found(again) == {monitor.pid: False}


def test_people_who_may_open_are_looked_at_each_time_where_there_are_no_lists(
    scan: HolderScan, node: str
) -> None:
    def seen() -> dict[int, bool]:
        return found(look(scan, node, None, may_open=frozenset({ALICE}), lists_processes=False))

    with child(ALICE, holding_on_request(node)) as one:
        assert seen() == {}
        ask_to_open(one.pid, node)
        assert seen() == {one.pid: True}


def test_what_somebody_opened_while_they_could_is_found_once_they_cannot(
    scan: HolderScan, node: str
) -> None:
    """Until then the vendor's list tells of those who use it."""
    both, bob_alone = frozenset({ALICE, BOB}), frozenset({BOB})
    with (
        child(ALICE, holding_on_request(node)) as one,
        child(ALICE, holding_on_request(node)) as two,
    ):
        assert found(look(scan, node, sample(), may_open=both)) == {}
        ask_to_open(one.pid, node)
        ask_to_open(two.pid, node)
        assert found(look(scan, node, sample(one.pid), may_open=both)) == {one.pid: True}

        for _ in range(3):
            seen = found(look(scan, node, sample(one.pid), may_open=bob_alone))
            assert seen == {one.pid: True, two.pid: False}


@pytest.mark.parametrize("lists_processes", [True, False])
def test_what_opened_while_everybody_could_is_found_once_the_gate_is_closed(
    scan: HolderScan, node: str, lists_processes: bool
) -> None:
    with child(ALICE, holding_on_request(node)) as one:
        look(scan, node, sample(), may_open=None, lists_processes=lists_processes)
        ask_to_open(one.pid, node)

        # A process that the vendor lists is seen at once, also without going through all others.
        listed = look(scan, node, sample(one.pid), may_open=None, lists_processes=lists_processes)
        assert found(listed) == {one.pid: True}
        closed = look(scan, node, sample(), lists_processes=lists_processes)
        assert found(closed) == {one.pid: not lists_processes}


def test_what_was_passed_past_a_closed_gate_is_found_by_the_next_full_scan(
    scan: HolderScan, node: str
) -> None:
    with child(ALICE, holding_on_request(node)) as one:
        look(scan, node, sample())
        ask_to_open(one.pid, node)
        assert found(look(scan, node, sample())) == {}

        scan.full_scan()
        assert found(look(scan, node, sample())) == {one.pid: False}


def test_a_missing_node_makes_a_listed_process_unbelievable(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as one:
        assert look(scan, "/nowhere/nvidia0", sample(one.pid)) is None


def test_a_simulated_device_has_no_node_and_says_itself_whose_a_process_is(
    scan: HolderScan,
) -> None:
    with child(ALICE, idle) as one:
        reading = Sample(uuid=GPU, at=NOW, processes=(ProcessUse(pid=one.pid, uid=BOB),))
        target = Target(device=GPU, node_paths=(), sample=reading, trusts_uids=True)
        moment = Moment(now=NOW, boottime_s=boottime_s())

        (holder,) = scan.look([target], moment=moment, may_open=None)[GPU] or ()

        assert (holder.pid, holder.uid, holder.uids) == (one.pid, BOB, (BOB,))
        assert (holder.uses, holder.protected) == (True, None)


@pytest.fixture
def dead_mount(tmp_path: Path) -> Iterator[str]:
    """A file system whose server never answers, as FUSE and NFS have them on bad days."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs FUSE")
    libc = ctypes.CDLL(None, use_errno=True)
    place = tmp_path / "dead"
    place.mkdir()
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"dead", os.fsencode(place), b"fuse", 0, options):
        pytest.skip(f"cannot mount: {os.strerror(ctypes.get_errno())}")
    yield str(place)
    libc.umount2(os.fsencode(place), 2)
    os.close(server)


def test_a_descriptor_on_a_dead_mount_hangs_nobody(
    processes: Processes, node: str, dead_mount: str
) -> None:
    def stat_of_it_hangs(ready: Callable[[], None]) -> None:
        ready()
        os.stat(dead_mount)

    made = Child(0, lambda ready: (os.open(dead_mount, os.O_PATH), holding(node)(ready)))
    try:
        scan = HolderScan(processes, only_uids=frozenset({0}))
        holders = look(scan, node, sample(made.pid))
        assert holders
        assert made.pid in found(holders)
        with child(0, stat_of_it_hangs) as one:
            until(lambda: "fuse" in Path(f"/proc/{one.pid}/wchan").read_text())
    finally:
        os.kill(made.pid, signal.SIGKILL)
        made.reap()


def test_holders_can_be_signalled_and_nobody_else(
    scan: HolderScan, processes: Processes, node: str
) -> None:
    """A process of the same person without the device lives on."""
    with child(ALICE, holding(node)) as job, child(ALICE, idle) as shell:
        look(scan, node, sample(job.pid))

        assert processes.terminate([job.pid, shell.pid]) == (job.pid,)
        assert job.reap() == signal.SIGTERM
        assert not shell.ended()


def test_a_process_that_ends_during_the_scan_is_skipped(scan: HolderScan, node: str) -> None:
    """Many come and go while the scan runs; none of it is an error."""

    def churn(ready: Callable[[], None]) -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        os.open(node, os.O_RDWR)
        ready()
        while True:
            if os.fork() == 0:
                os._exit(0)

    with child(ALICE, churn) as one:
        for _ in range(30):
            scan.full_scan()
            assert one.pid in found(look(scan, node, sample(one.pid)))
