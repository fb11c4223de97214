"""``python -m bench.crowd_of_processes COUNT NODE...``: processes of fifty people, twenty descriptors each.

The first of them hold a node each. Says ``ready PID...``; all end with its standard input.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.site import ROOT

PEOPLE = 50
FIRST_UID = 61001
DESCRIPTORS = 20


def main(count: int, nodes: list[str]) -> None:
    held = [*nodes, *["/dev/null"] * (count - len(nodes))]
    pids = [_sleeper(FIRST_UID + number % PEOPLE, path) for number, path in enumerate(held)]
    print("ready", *pids, flush=True)
    sys.stdin.read()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _sleeper(uid: int, held: str) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        # Should the measurement die.
        signal.alarm(600)
        os.open(held, os.O_RDWR)
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        for _ in range(DESCRIPTORS):
            os.open("/dev/null", os.O_RDONLY)
        while True:
            signal.pause()
    finally:
        os._exit(1)


@contextlib.contextmanager
def crowd(count: int, held: list[Path]) -> Iterator[list[int]]:
    """Their pids; the first of them hold these nodes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.crowd_of_processes", str(count), *held],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield [int(pid) for pid in process.stdout.readline().split()[1:]]
    finally:
        process.stdin.close()
        process.wait(60)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
