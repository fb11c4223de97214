"""What it costs to find who holds a device among 1,000 processes of fifty people, twenty descriptors each.

Eight of them have a slot, so that their processes are gone through in every look; the others are locked
out and remembered. Beside it, in turns: reading where every descriptor leads, which says nothing yet of
devices, and ``lsof`` on one node where it is installed.
"""

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bench.crowd_of_processes import FIRST_UID, crowd
from bench.figures import Figure, alternately_ms, percentile, timed_ms
from bench.site import Site
from reservations.core.wire import ProcessUse, Sample
from workers.host.clock import boottime_s
from workers.host.holders import HolderScan, Moment, Target
from workers.host.processes import Processes

PROCESSES = 1_000
BOOKED = 8
TICK_MS = 30.0
# Nothing on a machine keeps /dev/full open.
NUMBER = os.makedev(1, 7)
NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


def measure(site: Site) -> Iterator[Figure]:
    if os.geteuid() != 0:
        raise SystemExit("holders: needs root, for processes of other people")
    node = site.folder / "nvidia0"
    os.mknod(node, stat.S_IFCHR | 0o600, NUMBER)
    count = site.much(PROCESSES, 200)
    with crowd(count, [node] * BOOKED) as pids:
        scan = _Scan(node, pids[:BOOKED])
        repeat = site.much(60, 5)
        tick_ms, read_ms = alternately_ms(scan.tick, _read_all, repeat=repeat)
        full_ms, _ = alternately_ms(scan.full, _read_all, repeat=repeat // 3 + 1)
        lsof_ms = timed_ms(lambda: _lsof(node)) if shutil.which("lsof") else None
        scan.close()
    what = f"holders among {count:,} processes"
    for percent in (50, 99):
        yield Figure(
            name=f"{what}, {BOOKED} people let in: one look, p{percent}",
            value=percentile(tick_ms, percent),
            unit="ms",
            reference_name="reading every descriptor's link",
            reference=percentile(read_ms, percent),
            target=f"≤ {TICK_MS:.0f} ms",
            met=percentile(tick_ms, percent) <= TICK_MS,
        )
    yield Figure(
        name=f"{what}: a full look (every 60 s, and at each end), p50",
        value=percentile(full_ms, 50),
        unit="ms",
        reference_name="lsof on one node" if lsof_ms else "reading every descriptor's link",
        reference=lsof_ms or percentile(read_ms, 50),
        target="—",
        met=True,
    )


class _Scan:
    """The agent's own, for one device that the driver lists these processes on."""

    def __init__(self, node: Path, listed: list[int]) -> None:
        self._processes = Processes()
        self._scan = HolderScan(self._processes)
        uses = tuple(ProcessUse(pid=pid) for pid in listed)
        sample = Sample(uuid="GPU-a", at=NOW, processes=uses)
        self._target = Target(device="GPU-a", node_paths=(str(node),), sample=sample)
        self._may_open = frozenset(range(FIRST_UID, FIRST_UID + BOOKED))
        self._listed = len(listed)

    def tick(self) -> None:
        moment = Moment(now=NOW, boottime_s=boottime_s())
        found = self._scan.look([self._target], moment=moment, may_open=self._may_open)
        using = sum(holder.uses for holder in found["GPU-a"] or ())
        if using != self._listed:
            raise RuntimeError(f"expected {self._listed} processes on the device, found {using}")

    def full(self) -> None:
        self._scan.full_scan()
        self.tick()

    def close(self) -> None:
        self._processes.close()


def _read_all() -> None:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                for name in os.listdir(f"{process}/fd"):
                    with contextlib.suppress(OSError):
                        os.readlink(f"{process}/fd/{name}")


def _lsof(node: Path) -> None:
    subprocess.run(["lsof", "-n", "-P", "-w", str(node)], capture_output=True, check=False)
