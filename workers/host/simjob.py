"""Real processes on simulated devices: ``python -m workers.host.simjob prepare|start|list|stop``.

A job is started detached. As root it runs under the uid that its person has on the simulated host;
otherwise under one's own, and the state directory says whose it is. Starting always succeeds, also on
a device that is closed to the person (with a warning): such a job stands for a process that got its
descriptor past the gate. ``--respect-gate`` refuses instead.
"""

import argparse
import contextlib
import json
import os
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO
from uuid import NAMESPACE_DNS, uuid5

from workers.host import clock, processes
from workers.host.gates.record import RecordGate
from workers.host.simulation import (
    GIB,
    PROFILES,
    Job,
    SimulatedDevice,
    SimulatedHost,
    SimulationError,
)

# How long `stop` waits after SIGTERM before it sends SIGKILL.
STOP_GRACE_S = 3.0


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except SimulationError as error:
        _say(str(error), to=sys.stderr)
        return 1
    return 0


def prepare(options: argparse.Namespace) -> None:
    host = _host(options)
    host.prepare(
        [
            SimulatedDevice(
                uuid=f"GPU-{uuid5(NAMESPACE_DNS, f'{options.host}.{index}.simulated')}",
                index=index,
                model=options.model,
                memory_bytes=options.memory_gib * GIB,
                minor=index,
                power_limit_w=400.0 if options.memory_gib >= 48 else 350.0,
            )
            for index in range(options.devices)
        ],
        [name for name in options.users.split(",") if name],
    )
    _say(str(host.root))


def start(options: argparse.Namespace) -> None:
    """Prints ``{"pid": …}`` as its last line, once the job is on the device."""
    host = _host(options)
    device = _device(host, options.index)
    uid = host.users().get(options.user)
    if uid is None:
        raise SimulationError(f"{options.host} knows nobody named {options.user!r}")
    if not _is_open(host, device, uid):
        text = f"device {device.index} of {options.host} is not open to {options.user} now"
        if options.respect_gate:
            raise SimulationError(f"{text}; book it first")
        _say(f"warning: {text}; starting all the same, as if past the gate", to=sys.stderr)
    pid = _spawn(host, device, options, uid)
    _say(json.dumps({"pid": pid}))


def show(options: argparse.Namespace) -> None:
    for name, job in _jobs(options):
        index = {device.uuid: device.index for device in _at(options, name).devices()}
        place = f"{name}[{index.get(job.device, '?')}]"
        _say(f"{job.pid:>8}  {place:<12}  {job.unix_name:<12}  {job.profile}")


def stop(options: argparse.Namespace) -> None:
    pids = {job.pid for _, job in _jobs(options)}
    if not options.all and options.pid not in pids:
        raise SimulationError(f"{options.pid} is not a simulated job")
    for pid in pids if options.all else {options.pid}:
        _end(pid)


def _end(pid: int) -> None:
    # Gone between the look and the signal is what was asked for.
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
            if not select.select([pidfd], [], [], STOP_GRACE_S)[0]:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


def _spawn(
    host: SimulatedHost, device: SimulatedDevice, options: argparse.Namespace, uid: int
) -> int:
    """Forks twice, so that the job belongs to nobody's tree, and returns its pid once it is there."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        if os.fork() == 0:
            _be_job(host, device, options, uid=uid, started=writing)
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    if not answer.isdigit():
        raise SimulationError("the job did not start")
    return int(answer)


def _be_job(
    host: SimulatedHost,
    device: SimulatedDevice,
    options: argparse.Namespace,
    *,
    uid: int,
    started: int,
) -> None:
    """Never returns."""
    try:
        pid = os.getpid()
        facts = processes.read_facts(pid)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        ignores = options.profile == "ignore-term"
        signal.signal(signal.SIGTERM, signal.SIG_IGN if ignores else signal.SIG_DFL)
        host.register(
            Job(
                pid=pid,
                start_ticks=facts.start_ticks if facts else 0,
                boot=clock.boot_id(),
                device=device.uuid,
                unix_name=options.user,
                uid=uid,
                profile=options.profile,
            )
        )
        _leave_the_terminal()
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        if options.seconds:
            signal.alarm(options.seconds)
        os.write(started, str(pid).encode())
        os.close(started)
        while True:
            signal.pause()
    finally:
        os._exit(1)


def _leave_the_terminal() -> None:
    os.chdir("/")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)


def _is_open(host: SimulatedHost, device: SimulatedDevice, uid: int) -> bool:
    state = RecordGate(host.root / "gate.json", [device.uuid]).observe()[device.uuid]
    return state is not None and (state.group_open or uid in state.uids)


def _device(host: SimulatedHost, index: int) -> SimulatedDevice:
    devices = host.devices()
    for device in devices:
        if device.index == index:
            return device
    raise SimulationError(f"there is no device {index}; the host has {len(devices)}")


def _root(options: argparse.Namespace) -> Path:
    root: Path = options.state_root or Path(os.environ.get("BERTH_DATA", "var")) / "sim"
    return root.absolute()


def _at(options: argparse.Namespace, name: str) -> SimulatedHost:
    return SimulatedHost(_root(options) / name)


def _host(options: argparse.Namespace) -> SimulatedHost:
    return _at(options, options.host)


def _jobs(options: argparse.Namespace) -> Iterator[tuple[str, Job]]:
    for path in sorted(_root(options).glob("*/devices.json")):
        name = path.parent.name
        for job in _at(options, name).jobs():
            yield name, job


def _say(text: str, *, to: TextIO | None = None) -> None:
    (to or sys.stdout).write(f"{text}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="simjob", description="Jobs on simulated devices.")
    commands = parser.add_subparsers(required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--state-root", type=Path, help="the folder of all simulated hosts [$BERTH_DATA/sim]"
    )

    one = commands.add_parser("prepare", parents=[common], help="make or change a simulated host")
    one.add_argument("--host", required=True)
    one.add_argument("--devices", type=int, default=4)
    one.add_argument("--model", default="A100 80GB")
    one.add_argument("--memory-gib", type=int, default=80)
    one.add_argument("--users", default="", help="Unix names, separated by commas")
    one.set_defaults(run=prepare)

    one = commands.add_parser("start", parents=[common], help="start a job on a device")
    one.add_argument("--user", required=True)
    one.add_argument("--host", required=True)
    one.add_argument("--index", type=int, required=True)
    one.add_argument("--profile", choices=PROFILES, default="train")
    one.add_argument("--seconds", type=int, default=0, help="end by itself after so long")
    one.add_argument("--respect-gate", action="store_true", help="refuse where the gate is closed")
    one.set_defaults(run=start)

    one = commands.add_parser("list", parents=[common], help="the jobs that run now")
    one.set_defaults(run=show)

    one = commands.add_parser("stop", parents=[common], help="end a job")
    which = one.add_mutually_exclusive_group(required=True)
    which.add_argument("pid", type=int, nargs="?")
    which.add_argument("--all", action="store_true", help="every simulated job")
    one.set_defaults(run=stop)
    return parser


if __name__ == "__main__":
    sys.exit(main())
