"""The end of a slot until the gate is closed, the first signal arrives, and a stubborn job is dead.

A real agent in a process of its own over eight simulated devices; real jobs that hear SIGTERM and stay;
a small control plane over HTTP. In between, the reference: a thread that sleeps until an instant and
calls kill(2). All ends are staggered, so that each has a tick of its own, as in life.
"""

import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from bench.figures import Figure, percentile
from bench.nursery import PERSON
from bench.site import ROOT, Site
from reservations.core.wire import Grant
from tests.host.control_plane import ControlPlaneDouble
from tests.host.kit import SimHost
from tests.waiting import until

DEVICES = 8
GRACE_S = 0.5
# Seconds between two ends; the reference has its end in the middle.
STEP_S = 0.3
SLOT_S = 1.2
# A job begins this long before its end.
JOB_S = 0.9


class Jobs:
    """Jobs of a nursery, with the instants (seconds since 1970) at which each was signalled and died."""

    def __init__(self, state_dir: Path) -> None:
        self.signalled_at: dict[int, float] = {}
        self.died_at: dict[int, float] = {}
        self._born: queue.Queue[int] = queue.Queue()
        self._poll = select.epoll()
        self._pids: dict[int, int] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.nursery", str(state_dir)],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        for work in (self._listen, self._watch):
            threading.Thread(target=work, daemon=True).start()

    def start(self, device: str = "-") -> int:
        self._process.stdin.write(f"{device}\n")
        pid = self._born.get(timeout=20)
        pidfd = os.pidfd_open(pid)
        self._pids[pidfd] = pid
        self._poll.register(pidfd, select.EPOLLIN)
        return pid

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait(10)
        for pidfd, pid in self._pids.items():
            if pid not in self.died_at:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def _listen(self) -> None:
        for line in self._process.stdout:
            word, pid, *rest = line.split()
            if word == "job":
                self._born.put(int(pid))
            else:
                self.signalled_at.setdefault(int(pid), float(rest[0]))

    def _watch(self) -> None:
        while True:
            for pidfd, _ in self._poll.poll():
                self.died_at[self._pids[pidfd]] = time.time()
                self._poll.unregister(pidfd)


@dataclass
class Ends:
    """The instant of each end, and the job that ran into it."""

    at: list[float] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)

    def delays_ms(self, instants: dict[int, float], *, after_s: float = 0.0) -> list[float]:
        return [
            (instants[pid] - end - after_s) * 1000
            for end, pid in zip(self.at, self.pids, strict=True)
        ]


def measure(site: Site) -> Iterator[Figure]:
    count = site.much(100, 16)
    folder = site.folder / "slot-end"
    folder.mkdir()
    sim = SimHost(folder, devices=DEVICES)
    sim.settings = msgspec.structs.replace(sim.settings, grace_s=GRACE_S)
    jobs = Jobs(sim.state_dir)
    try:
        with ControlPlaneDouble(sim.name) as plane:
            plane.settings = sim.settings
            sim.worker(plane.url)
            until(lambda: plane.samples and not sim.gate().group_open, limit_s=60)
            managed, bare = _run(plane, sim, jobs, count)
            closed_ms = _closed_ms(plane, count)
    finally:
        jobs.close()
        sim.close()
    yield from _figures(managed, bare, jobs, closed_ms)


def _run(plane: ControlPlaneDouble, sim: SimHost, jobs: Jobs, count: int) -> tuple[Ends, Ends]:
    """All ends, one after the other; returns when the last job is dead."""
    first = time.time() + 6
    managed, bare = Ends(), Ends()
    managed.at = [first + number * STEP_S for number in range(count)]
    bare.at = [end + STEP_S / 2 for end in managed.at]
    devices = [sim.uuids[number % DEVICES] for number in range(count)]
    plane.grants = tuple(map(_grant, range(1, count + 1), devices, managed.at))
    # The answer to a heartbeat (one a second) tells the agent that there is a new plan.
    asked = plane.plans_asked
    until(lambda: plane.plans_asked > asked)
    for device, end, bare_end in zip(devices, managed.at, bare.at, strict=True):
        _sleep_until(end - JOB_S)
        managed.pids.append(jobs.start(device))
        bare.pids.append(jobs.start())
        threading.Thread(target=_bare_timer, args=(bare.pids[-1], bare_end), daemon=True).start()
    expected = {*managed.pids, *bare.pids}
    until(lambda: expected <= jobs.died_at.keys() & jobs.signalled_at.keys(), limit_s=60)
    return managed, bare


def _grant(booking: int, device: str, end: float) -> Grant:
    ends = datetime.fromtimestamp(end, UTC)
    starts = ends - timedelta(seconds=SLOT_S)
    return Grant(booking=booking, device=device, unix_name=PERSON, start=starts, end=ends)


def _bare_timer(pid: int, end: float) -> None:
    _sleep_until(end)
    os.kill(pid, signal.SIGTERM)
    _sleep_until(end + GRACE_S)
    os.kill(pid, signal.SIGKILL)


def _sleep_until(instant: float) -> None:
    time.sleep(max(0.0, instant - time.time()))


def _closed_ms(plane: ControlPlaneDouble, count: int) -> list[float]:
    """From the agent's own reports: seconds from the edge until the gate had been set."""

    def closings() -> list[float]:
        return [one.latency_s * 1000 for one in plane.reports if one.kind == "closed"]

    until(lambda: len(closings()) >= count, limit_s=30)
    return closings()


def _figures(managed: Ends, bare: Ends, jobs: Jobs, closed_ms: list[float]) -> Iterator[Figure]:
    signalled = managed.delays_ms(jobs.signalled_at)
    bare_signalled = bare.delays_ms(jobs.signalled_at)
    dead = managed.delays_ms(jobs.died_at, after_s=GRACE_S)
    bare_dead = bare.delays_ms(jobs.died_at, after_s=GRACE_S)
    what = f"slot end ({len(managed.at)} ends)"
    yield from _pair(f"{what} → gate closed", closed_ms, bare_signalled, (20, 250))
    yield from _pair(f"{what} → first signal received", signalled, bare_signalled, (20, 250))
    yield from _pair(f"{what} → stubborn job dead, after its grace", dead, bare_dead, (None, 500))


def _pair(
    name: str, values: list[float], references: list[float], targets: tuple[float | None, float]
) -> Iterator[Figure]:
    for percent, target in zip((50, 99), targets, strict=True):
        value = percentile(values, percent)
        yield Figure(
            name=f"{name}: p{percent}",
            value=value,
            unit="ms",
            reference_name="bare timer and kill(2)",
            reference=percentile(references, percent),
            target=f"≤ {target} ms" if target else "—",
            met=target is None or value <= target,
        )
