"""``python -m bench.nursery STATE_DIR``: starts jobs that note when SIGTERM reaches them, and stay.

For each line of standard input it answers ``job PID``; each job says ``term PID EPOCH_S`` by itself. A
line is a simulated device's UUID, ``/path/of/a/node UID`` for a real one, or ``-`` for none.
"""

import os
import signal
import sys
import time
from pathlib import Path

from workers.host import clock, processes
from workers.host.simulation import Job, SimulatedHost

PERSON = "alice"


def main(state_dir: str) -> None:
    host = SimulatedHost(Path(state_dir))
    # Nobody waits for the jobs: the kernel takes them away.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            _be_job(host, *line.split())


def _be_job(host: SimulatedHost, device: str, uid: str = "") -> None:
    """Never returns."""
    try:
        pid = os.getpid()
        signal.signal(signal.SIGTERM, lambda *_: _say(f"term {pid} {time.time()}"))
        if device.startswith("/"):
            _hold(device, int(uid))
        elif device != "-":
            _register(host, device, pid)
        _say(f"job {pid}")
        # Ends by itself, should the measurement die.
        signal.alarm(120)
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _hold(node: str, uid: int) -> None:
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    while True:
        try:
            os.open(node, os.O_RDWR)
        except PermissionError:
            # Its slot begins in a moment.
            time.sleep(0.01)
        else:
            return


def _register(host: SimulatedHost, device: str, pid: int) -> None:
    facts = processes.read_facts(pid)
    if facts is not None:
        host.register(
            Job(
                pid=pid,
                start_ticks=facts.start_ticks,
                boot=clock.boot_id(),
                device=device,
                unix_name=PERSON,
                uid=host.users()[PERSON],
                profile="idle",
            )
        )


def _say(text: str) -> None:
    """In one write, which no other job's can split."""
    os.write(1, f"{text}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1])
