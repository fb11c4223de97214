"""What a steady agent costs on a host of eight devices and 1,000 processes, beside gpustat and nvitop.

Devices and process lists are those of the stand-in library, which all three read; nodes, ACLs and
processes are real. The agent looks every five seconds and enforces; the others, shown once a second
as people run them, only show.
"""

import contextlib
import fcntl
import os
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.crowd_of_processes import FIRST_UID, crowd
from bench.figures import Figure
from bench.gpu_host import DEVICES, NAME, OPENED, UUIDS, GpuHost
from bench.site import Site
from tests.host.control_plane import ControlPlaneDouble, grant
from tests.waiting import until

PROCESSES = 1_000
PROGRAMS = {"gpustat -i 1": ("gpustat", "-i", "1"), "nvitop": ("nvitop",)}
CPU_TARGET_PERCENT = 1.0
MEMORY_TARGET_MB = 80.0
# By then the first looks have filled the caches, and a monitor has drawn its first screens.
WARM_UP_S, OTHER_WARM_UP_S = 6, 3
_WHERE_IS_THE_CURSOR = b"\x1b[6n"
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """Per cent of a core over a while, and resident memory in MB after it."""

    cpu_percent: float
    memory_mb: float


def measure(site: Site) -> Iterator[Figure]:
    span_s, other_s = site.much(60, 6), site.much(20, 3)
    folder = site.folder / "agent-cost"
    folder.mkdir()
    host = GpuHost(folder)
    processes = site.much(PROCESSES, 200)
    with crowd(processes, [host.node(number) for number in OPENED]) as pids:
        host.listed({number: [pid] for number, pid in zip(OPENED, pids, strict=False)})
        agent = _agent_cost(host, span_s)
        others = {name: _program_cost(words, host, other_s) for name, words in PROGRAMS.items()}
    what = f"agent, {DEVICES} devices, {processes} processes, steady"
    for name, other in others.items():
        yield Figure(
            name=f"{what}: CPU",
            value=agent.cpu_percent,
            unit="%",
            reference_name=name,
            reference=other.cpu_percent,
            target=f"≤ {CPU_TARGET_PERCENT:g} % of a core",
            met=agent.cpu_percent <= CPU_TARGET_PERCENT,
        )
        yield Figure(
            name=f"{what}: memory",
            value=agent.memory_mb,
            unit="MB",
            reference_name=name,
            reference=other.memory_mb,
            target=f"≤ {MEMORY_TARGET_MB:g} MB",
            met=agent.memory_mb <= MEMORY_TARGET_MB,
        )


def _agent_cost(host: GpuHost, span_s: float) -> Cost:
    with ControlPlaneDouble(NAME) as plane:
        plane.settings = host.settings
        plane.grants = tuple(
            grant(uuid, f"u{FIRST_UID + number}", booking=number + 1)
            for number, uuid in enumerate(UUIDS)
        )
        with host.worker(plane.url) as worker:
            until(lambda: plane.kinds().count("opened") == DEVICES, limit_s=30)
            time.sleep(WARM_UP_S)
            return _cost(worker.pid, span_s)


def _program_cost(words: Sequence[str], host: GpuHost, span_s: float) -> Cost:
    """A monitor on a terminal that somebody looks at."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", *words],
        env={**host.environment(), "TERM": "linux"},
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
    )
    threading.Thread(target=_be_terminal, args=(ours,), daemon=True).start()
    try:
        time.sleep(OTHER_WARM_UP_S)
        if process.poll() is not None:
            raise RuntimeError(f"{words[0]} has ended with {process.returncode}")
        return _cost(process.pid, span_s)
    finally:
        process.kill()
        process.wait(30)
        os.close(theirs)


def _be_terminal(ours: int) -> None:
    """Reads what is shown, and says where the cursor is: gpustat waits to hear it."""
    with contextlib.suppress(OSError):
        while shown := os.read(ours, 65536):
            if _WHERE_IS_THE_CURSOR in shown:
                os.write(ours, b"\x1b[1;1R")
    os.close(ours)


def _cost(pid: int, span_s: float) -> Cost:
    began, before = time.monotonic(), _cpu_s(pid)
    time.sleep(span_s)
    used_s, took_s = _cpu_s(pid) - before, time.monotonic() - began
    return Cost(used_s / took_s * 100, _resident_mb(pid))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024
