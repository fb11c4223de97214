"""What ``berth-host status`` shows: written by the agent at every tick, read without asking it."""

import contextlib
import fcntl
import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec

from reservations.core.enforcement import DeviceState, HostGrant, Ladder
from reservations.core.wire import DeviceInfo, HealthProblem, Hold, Mode, Shape
from workers.host.files import open_lock, replace_unsynced
from workers.host.lookout import Sight
from workers.host.plain_text import plain
from workers.host.spans import spoken

# How long whoever waits for the lock leaves it alone between two looks.
LOCK_LOOK_S = 0.05
MAX_LINE = 4000


class DeviceStatus(Shape, frozen=True, kw_only=True):
    """``gate`` in words; ``holders`` as ``pid (uid)``, None where they cannot be known."""

    uuid: str
    index: int
    model: str
    health: str
    gate: str
    holders: tuple[str, ...] | None = None
    open_to: tuple[int, ...] = ()
    group_open: bool = False


class Status(Shape, frozen=True, kw_only=True):
    host: str
    at: datetime
    mode: Mode
    plan_as_of: datetime | None = None
    clock_trusted: bool = False
    may_stop: bool = False
    grants: tuple[HostGrant, ...] = ()
    devices: tuple[DeviceStatus, ...] = ()
    ladder: Ladder = Ladder()
    reports_waiting: int = 0
    health: tuple[HealthProblem, ...] = ()
    hold: Hold | None = None
    yielded: tuple[str, ...] = ()
    released_at: datetime | None = None
    # Which revision of what root says by hand the agent has obeyed.
    by_hand_revision: int = 0


def of_devices(devices: Sequence[DeviceInfo], sight: Sight) -> tuple[DeviceStatus, ...]:
    return tuple(_of_device(device, sight) for device in devices)


def _of_device(device: DeviceInfo, sight: Sight) -> DeviceStatus:
    state = sight.observed.get(device.uuid)
    if state is None:
        return DeviceStatus(
            uuid=device.uuid,
            index=device.index,
            model=device.model,
            health="unknown",
            gate="left alone",
        )
    return DeviceStatus(
        uuid=device.uuid,
        index=device.index,
        model=device.model,
        health=sight.samples[device.uuid].health,
        gate=_gate_in_words(state),
        holders=_holders_in_words(state),
        open_to=tuple(sorted(state.gate.uids)) if state.gate else (),
        group_open=state.gate is not None and state.gate.group_open,
    )


def _gate_in_words(state: DeviceState) -> str:
    if state.gate is None:
        return "unknown"
    people = [f"uid {uid}" for uid in sorted(state.gate.uids)]
    group = ["the access group"] if state.gate.group_open else []
    return "open to " + (", ".join(people + group) or "nobody")


def _holders_in_words(state: DeviceState) -> tuple[str, ...] | None:
    if state.holders is None:
        return None
    return tuple(f"{holder.pid} ({holder.uid})" for holder in state.holders)


def write(folder: Path, status: Status) -> None:
    replace_unsynced(folder / "status.json", msgspec.json.encode(status))


def read(folder: Path) -> Status | None:
    try:
        return msgspec.json.decode((folder / "status.json").read_bytes(), type=Status)
    except (OSError, msgspec.DecodeError):
        return None


class AlreadyRunning(RuntimeError):
    """Another agent enforces this host."""


@contextlib.contextmanager
def only_agent(folder: Path, *, wait_s: float = 0.0) -> Iterator[None]:
    """Holds the lock of this host while the block runs; the kernel frees it if the process dies.

    ``wait_s`` outlasts those who only look whether an agent runs.

    Raises:
        AlreadyRunning: another process has it.
    """
    until = time.monotonic() + wait_s
    with open_lock(folder / "agent.lock") as file:
        while not _locked(file):
            if time.monotonic() >= until:
                raise AlreadyRunning(f"another agent already enforces {folder}")
            time.sleep(LOCK_LOOK_S)  # noqa: TID251 -- before anything has started
        yield


def _locked(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_running(folder: Path) -> bool:
    """Whether an agent holds the lock."""
    try:
        with only_agent(folder):
            return False
    except AlreadyRunning:
        return True
    except OSError:
        return False


def in_words(status: Status, *, running: bool, now: datetime) -> str:
    """A page of plain text."""
    lines = [
        f"host {status.host}: agent {'runs' if running else 'does not run'}, mode {status.mode}",
        f"last look {_ago(status.at, now)}; plan as of {_ago(status.plan_as_of, now)}"
        f"; may stop processes: {'yes' if status.may_stop else 'no'}",
        f"reports waiting: {status.reports_waiting}",
        "devices:",
    ]
    for device in status.devices:
        held = "unknown" if device.holders is None else ", ".join(device.holders) or "nobody"
        lines.append(f"  {device.index} {device.model} {device.uuid} ({device.health})")
        lines.append(f"    gate: {device.gate}; holders: {held}")
    names = {device.uuid: f"{device.index} {device.model}" for device in status.devices}
    lines.append("grants now:" if status.grants else "grants now: none")
    lines += [
        f"  {grant.unix_name} ({grant.uid}) on {names.get(grant.device, grant.device)} "
        f"until {grant.end:%Y-%m-%d %H:%M:%S} UTC, "
        + ("given by hand" if grant.booking is None else f"booking {grant.booking}")
        for grant in status.grants
    ]
    lines += [f"problem: {problem.text}" for problem in status.health] or ["no problems"]
    # Names, models and reasons are others' words.
    return "\n".join(_indented(line) for line in lines)


def _indented(line: str) -> str:
    depth = len(line) - len(line.lstrip(" "))
    return " " * depth + plain(line, limit=MAX_LINE)


def in_a_line(status: Status) -> str:
    """For `systemctl status`."""
    held = "held, " if status.hold else ""
    released = "released, " if status.released_at else ""
    return (
        f"{released}{held}mode {status.mode}, {len(status.grants)} grants in force, "
        f"plan as of {_ago(status.plan_as_of, status.at)}, {len(status.health)} problems"
    )


def _ago(at: datetime | None, now: datetime) -> str:
    return f"{spoken(now - at)} ago" if at else "never"
