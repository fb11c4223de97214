"""Devices that work, or keep memory, for nobody: an administrator is told, and nobody is blamed."""

import os
import signal
from datetime import timedelta

import pytest

from tests.host.people import Child, child
from tests.host.scanning import (
    ALICE,
    BOB,
    GIB,
    GPU,
    NOW,
    ask_to_open,
    found,
    holding,
    holding_on_request,
    idle,
    look,
    sample,
)
from workers.host.clock import boottime_s
from workers.host.ghosts import ORPHANED_AFTER
from workers.host.holders import HolderScan, Moment, Target
from workers.host.processes import Processes

pytestmark = pytest.mark.root
MIB = 2**20


def died() -> int:
    gone = Child(ALICE, idle)
    os.kill(gone.pid, signal.SIGKILL)
    gone.reap()
    return gone.pid


def told(scan: HolderScan) -> list[tuple[str, str | None]]:
    return [(problem.code, problem.device) for problem in scan.problems()]


@pytest.mark.parametrize("listed", [True, False])
def test_memory_that_nobody_at_all_holds_needs_attention(
    scan: HolderScan, node: str, listed: bool
) -> None:
    reading = sample(*[died()] * listed, used_bytes=32_000 * MIB)

    assert look(scan, node, reading) == ()
    assert told(scan) == []
    assert look(scan, node, reading, at=ORPHANED_AFTER) == ()

    assert told(scan) == [("ghost_use", GPU)]
    assert scan.problems()[0].text == (
        "Needs attention: 31.2 GiB of its memory are occupied, and nobody's process is on the "
        "device. A reset may free it."
    )


def test_full_load_with_nobody_there_needs_attention(scan: HolderScan, node: str) -> None:
    reading = sample(busy_percent=100, used_bytes=4 * MIB)
    look(scan, node, reading)
    look(scan, node, reading, at=ORPHANED_AFTER)

    assert told(scan) == [("ghost_use", GPU)]
    assert "computes at full load" in scan.problems()[0].text


@pytest.mark.parametrize("used_bytes", [0, 2 * MIB, 32 * MIB])
def test_a_few_mebibytes_and_no_process_is_free(
    scan: HolderScan, node: str, used_bytes: int
) -> None:
    reading = sample(used_bytes=used_bytes, busy_percent=0)
    look(scan, node, reading)

    assert look(scan, node, reading, at=ORPHANED_AFTER * 3) == ()
    assert told(scan) == []


def test_what_a_process_uses_is_no_ghost(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as job:
        reading = sample(job.pid, used_bytes=32 * GIB, busy_percent=100)
        look(scan, node, reading)
        look(scan, node, reading, at=ORPHANED_AFTER)

        assert told(scan) == []


def test_orphaned_workers_are_somebody_and_not_a_ghost(scan: HolderScan, node: str) -> None:
    with child(BOB, holding(node)) as worker:
        reading = sample(died(), used_bytes=32 * GIB)
        look(scan, node, reading)

        assert found(look(scan, node, reading, at=ORPHANED_AFTER)) == {worker.pid: True}
        assert told(scan) == []


def test_a_system_service_that_keeps_every_device_open_explains_nothing(
    processes: Processes, node: str
) -> None:
    """As persistenced, exporters and the agent itself do."""
    with child(999, holding(node)) as service:
        scan = HolderScan(processes, only_uids=frozenset({999}))
        reading = sample(used_bytes=32 * GIB)
        look(scan, node, reading)

        assert found(look(scan, node, reading, at=ORPHANED_AFTER)) == {service.pid: False}
        assert told(scan) == [("ghost_use", GPU)]


def test_a_ghost_that_is_gone_is_told_no_more(scan: HolderScan, node: str) -> None:
    ghost = sample(used_bytes=32 * GIB, busy_percent=100)
    look(scan, node, ghost)
    look(scan, node, ghost, at=ORPHANED_AFTER)

    look(scan, node, sample(used_bytes=0, busy_percent=0), at=timedelta(seconds=6))
    assert told(scan) == []
    look(scan, node, ghost, at=timedelta(seconds=7))
    assert told(scan) == []


def test_a_device_that_is_not_looked_at_any_more_is_told_of_no_more(
    scan: HolderScan, node: str
) -> None:
    ghost = sample(used_bytes=32 * GIB)
    look(scan, node, ghost)
    look(scan, node, ghost, at=ORPHANED_AFTER)
    assert told(scan)

    scan.look([], moment=Moment(now=NOW, boottime_s=boottime_s()), may_open=frozenset())
    assert told(scan) == []


def test_a_device_without_nodes_is_unknown_and_no_ghost(scan: HolderScan) -> None:
    """One that is divided into instances counts the memory and processes of all of them."""
    with child(ALICE, idle) as one:
        target = Target(device=GPU, node_paths=(), sample=sample(one.pid, used_bytes=32 * GIB))
        for seconds in (0, 10):
            moment = Moment(now=NOW + timedelta(seconds=seconds), boottime_s=boottime_s())
            assert scan.look([target], moment=moment, may_open=frozenset())[GPU] is None

        assert told(scan) == []


def test_before_a_ghost_is_told_of_everybody_is_looked_at_again(
    scan: HolderScan, node: str
) -> None:
    """A descriptor may have been passed on past a closed gate since the last full look."""
    with child(ALICE, holding_on_request(node)) as one:
        look(scan, node, sample())
        ask_to_open(one.pid, node)
        reading = sample(used_bytes=32 * GIB)
        look(scan, node, reading)

        assert found(look(scan, node, reading, at=timedelta(seconds=1))) == {one.pid: False}
