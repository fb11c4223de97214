"""Ends of slots on a host, staggered so that each has a tick of its own, as in life; and bare ones between.

The jobs hear SIGTERM and stay. In between, the reference: a thread that sleeps until an instant and
calls kill(2).
"""

import os
import queue
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bench.figures import Figure, percentile
from bench.site import ROOT
from reservations.core.wire import Grant
from tests.host.control_plane import ControlPlaneDouble
from tests.waiting import until

GRACE_S = 0.5


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

    def start(self, line: str = "-") -> int:
        """A job as the nursery's line says; its pid."""
        self._process.stdin.write(f"{line}\n")
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


@dataclass(frozen=True)
class Slots:
    """One after the other on each device, by turns.

    ``step_s`` between two ends, with a bare one in the middle; a slot of ``slot_s``, in whose last
    ``job_s`` a job runs: the one before must be dead and the gate open by then.
    """

    devices: Sequence[str]
    people: Sequence[str]
    step_s: float
    slot_s: float
    job_s: float

    def grant(self, number: int, end: float) -> Grant:
        ends = datetime.fromtimestamp(end, UTC)
        return Grant(
            booking=number + 1,
            device=self.devices[number % len(self.devices)],
            unix_name=self.people[number % len(self.people)],
            start=ends - timedelta(seconds=self.slot_s),
            end=ends,
        )


@dataclass
class Run:
    """What came of all ends: those that the agent saw to, and the bare ones."""

    managed: Ends
    bare: Ends
    jobs: Jobs
    closed_ms: Sequence[float]

    def figures(self, what: str) -> Iterator[Figure]:
        seen = self.jobs.signalled_at
        signalled, bare = self.managed.delays_ms(seen), self.bare.delays_ms(seen)
        died = self.jobs.died_at
        dead = self.managed.delays_ms(died, after_s=GRACE_S)
        bare_dead = self.bare.delays_ms(died, after_s=GRACE_S)
        yield from _pair(f"{what} → gate closed", self.closed_ms, bare, (20, 250))
        yield from _pair(f"{what} → first signal received", signalled, bare, (20, 250))
        name = f"{what} → stubborn job dead, after its grace"
        yield from _pair(name, dead, bare_dead, (None, 500))


def run(
    plane: ControlPlaneDouble, jobs: Jobs, slots: Slots, *, count: int, begin: Callable[[int], int]
) -> Run:
    """All ends, one after the other; returns when the last job is dead. ``begin`` starts the nth job."""
    first = time.time() + 6
    managed, bare = Ends(), Ends()
    managed.at = [first + number * slots.step_s for number in range(count)]
    bare.at = [end + slots.step_s / 2 for end in managed.at]
    plane.grants = (*plane.grants, *map(slots.grant, range(count), managed.at))
    # The answer to a heartbeat (one a second) tells the agent that there is a new plan.
    asked = plane.plans_asked
    until(lambda: plane.plans_asked > asked)
    for number, (end, bare_end) in enumerate(zip(managed.at, bare.at, strict=True)):
        _sleep_until(end - slots.job_s)
        try:
            managed.pids.append(begin(number))
        except queue.Empty as error:
            said = "\n".join(map(str, plane.reports[-20:]))
            raise RuntimeError(
                f"job {number} never had its device; the agent's last:\n{said}"
            ) from error
        bare.pids.append(jobs.start())
        threading.Thread(target=_bare_timer, args=(bare.pids[-1], bare_end), daemon=True).start()
    expected = {*managed.pids, *bare.pids}
    until(lambda: expected <= jobs.died_at.keys() & jobs.signalled_at.keys(), limit_s=60)
    return Run(managed, bare, jobs, _closed_ms(plane, count))


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
