"""Scanning for holders of a device that can really be held, for tests as root."""

import os
import signal
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reservations.core.enforcement import Holder
from reservations.core.wire import ProcessUse, Sample
from tests.host.people import let_everybody_into, wait_for_ever
from tests.waiting import until
from workers.host.clock import boottime_s
from workers.host.holders import HolderScan, Moment, Target

# Nobody else has these: the scan finds whatever holds such a number under one of them.
ALICE, BOB, CAROL = 61301, 61302, 61303
GPU = "GPU-a"
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
GIB = 2**30
# Descriptors of these numbers can be held, though no driver of a device is there.
ZERO, FULL = os.makedev(1, 5), os.makedev(1, 7)

Body = Callable[[Callable[[], None]], None]


def make_node(folder: Path, name: str = "nvidia0", number: int = ZERO) -> str:
    """A node that everybody may open."""
    let_everybody_into(folder)
    path = folder / name
    os.mknod(path, stat.S_IFCHR | 0o666, number)
    path.chmod(0o666)
    return str(path)


def holding(*paths: str) -> Body:
    def body(ready: Callable[[], None]) -> None:
        for path in paths:
            os.open(path, os.O_RDWR)
        ready()
        wait_for_ever()

    return body


def holding_on_request(path: str) -> Body:
    """Opens the device when it hears SIGUSR1."""

    def body(ready: Callable[[], None]) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: os.open(path, os.O_RDWR))
        ready()
        wait_for_ever()

    return body


def ask_to_open(pid: int, path: str) -> None:
    os.kill(pid, signal.SIGUSR1)
    until(lambda: path in map(os.path.realpath, Path(f"/proc/{pid}/fd").iterdir()))


def idle(ready: Callable[[], None]) -> None:
    ready()
    wait_for_ever()


def sample(
    *pids: int,
    used_bytes: int | None = None,
    reserved: int | None = 0,
    busy_percent: float | None = None,
    device: str = GPU,
) -> Sample:
    return Sample(
        uuid=device,
        at=NOW,
        utilization_percent=busy_percent,
        memory_used_bytes=used_bytes,
        memory_reserved_bytes=reserved,
        processes=tuple(ProcessUse(pid=pid) for pid in pids),
    )


def look(
    scan: HolderScan,
    node: str,
    reading: Sample | None,
    *,
    may_open: frozenset[int] | None = frozenset(),
    at: timedelta = timedelta(0),
    **traits: bool,
) -> tuple[Holder, ...] | None:
    target = Target(device=GPU, node_paths=(node,), sample=reading, **traits)
    moment = Moment(now=NOW + at, boottime_s=boottime_s())
    return scan.look([target], moment=moment, may_open=may_open)[GPU]


def found(holders: tuple[Holder, ...] | None) -> dict[int, bool]:
    """Each holder's pid, and whether it uses the device."""
    assert holders is not None
    return {holder.pid: holder.uses for holder in holders}
