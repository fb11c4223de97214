"""``devices.json``: what everybody on the host may know of its devices, for `berth-host top` and scripts.

A closed device is hidden from its vendor's own tools, so this is where to look. Written by the agent at
every tick, read without asking it. It names people only where the site shows who holds what.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from reservations.core.enforcement import HostGrant, Ladder
from reservations.core.usage import Code, Condition, Held, judge
from reservations.core.wire import DeviceInfo, DeviceKind, Health, Mode, ProcessUse, Sample
from workers.host.files import others_may_write
from workers.host.plans import InForce

NAME = "devices.json"
VERSION = 1
# With nothing changed it is still written this often, and older than that it is stale.
REFRESH_S = 5.0
STALE_AFTER_S = 30.0
SOMEBODY = "somebody"


class _Public(msgspec.Struct, frozen=True, kw_only=True):
    """Unlike on the wire, what is not known is there as null."""


class PublicProcess(_Public, frozen=True, kw_only=True):
    pid: int
    user: str | None = None
    memory_bytes: int | None = None


class PublicDevice(_Public, frozen=True, kw_only=True):
    """``held_by``: who has processes on it; None where that is hidden or cannot be read, as ``processes``.

    ``booked_by``: who may use it now, until ``booked_until``.
    """

    uuid: str
    index: int
    kind: DeviceKind
    model: str
    bus_id: str
    health: Health
    verdict: Code
    verdict_text: str
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    utilization_percent: float | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    fan_percent: float | None = None
    sm_clock_mhz: float | None = None
    held_by: tuple[str, ...] | None = None
    booked_by: tuple[str, ...] | None = None
    booked_until: datetime | None = None
    next_booking_at: datetime | None = None
    processes: tuple[PublicProcess, ...] | None = None


class PublicHost(_Public, frozen=True, kw_only=True):
    """The whole file. Once it is older than ``stale_after_s``, the agent does not run."""

    version: int = VERSION
    at: datetime
    stale_after_s: float = STALE_AFTER_S
    host: str
    url: str
    mode: Mode
    devices: tuple[PublicDevice, ...]


def of_devices(
    devices: Sequence[DeviceInfo],
    samples: Mapping[str, Sample],
    in_force: InForce,
    *,
    ladder: Ladder,
    now: datetime,
) -> tuple[PublicDevice, ...]:
    """Each device as this tick saw it, by index."""
    conditions = {
        rung.device: Condition("needs_attention", rung.stuck_at)
        for rung in ladder.rungs
        if rung.stuck_at is not None
    }
    return tuple(
        _device(
            device,
            samples.get(device.uuid),
            [grant for grant in in_force.grants if grant.device == device.uuid and grant.end > now],
            condition=conditions.get(device.uuid, Condition()),
            shown=in_force.settings.show_owners,
            now=now,
        )
        for device in sorted(devices, key=lambda device: (device.index, device.uuid))
    )


def _device(
    device: DeviceInfo,
    sample: Sample | None,
    grants: Sequence[HostGrant],
    *,
    condition: Condition,
    shown: bool,
    now: datetime,
) -> PublicDevice:
    running = [grant for grant in grants if grant.start <= now]
    held = _held(running, shown=shown)
    verdict = judge(condition, sample, held=held, now=now, called=str if shown else _hidden)
    seen = sample or Sample(uuid=device.uuid, at=now, health="unknown")
    return PublicDevice(
        uuid=device.uuid,
        index=device.index,
        kind=device.kind,
        model=device.model,
        bus_id=device.bus_id,
        health=seen.health,
        verdict=verdict.code,
        verdict_text=verdict.text,
        memory_total_bytes=seen.memory_total_bytes or device.memory_bytes,
        memory_used_bytes=seen.memory_used_bytes,
        memory_reserved_bytes=seen.memory_reserved_bytes,
        utilization_percent=seen.utilization_percent,
        temperature_c=seen.temperature_c,
        power_w=seen.power_w,
        power_limit_w=seen.power_limit_w,
        fan_percent=seen.fan_percent,
        sm_clock_mhz=seen.sm_clock_mhz,
        held_by=_users(seen) if shown else None,
        booked_by=_names(running) if shown else None,
        booked_until=max((grant.end for grant in running), default=None),
        next_booking_at=min((grant.start for grant in grants if grant.start > now), default=None),
        processes=_processes(seen, shown=shown),
    )


def _held(running: Sequence[HostGrant], *, shown: bool) -> Held | None:
    if not running:
        return None
    return Held(
        owner=", ".join(_names(running)) if shown else SOMEBODY,
        start=min(grant.start for grant in running),
        unix_names=frozenset(grant.unix_name for grant in running),
    )


def _hidden(unix_name: str) -> str:
    del unix_name
    return SOMEBODY


def _names(grants: Iterable[HostGrant]) -> tuple[str, ...]:
    return tuple(sorted({grant.unix_name for grant in grants}))


def _users(sample: Sample) -> tuple[str, ...] | None:
    if sample.processes is None:
        return None
    found = (_user(one) for one in sample.processes)
    return tuple(sorted({user for user in found if user is not None}))


def _user(process: ProcessUse) -> str | None:
    """Their name, or their uid where that has none; None where neither is known."""
    if process.uid is None:
        return None
    return process.unix_name or f"uid {process.uid}"


def _processes(sample: Sample, *, shown: bool) -> tuple[PublicProcess, ...] | None:
    if sample.processes is None:
        return None
    return tuple(
        PublicProcess(
            pid=one.pid,
            user=_user(one) if shown else None,
            memory_bytes=one.memory_bytes,
        )
        for one in sample.processes
    )


class PublicFile:
    """The door: writes the file, whole or not at all. ``problem`` says why it could not be written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: PublicHost | None = None
        self.problem = ""

    def write(self, content: PublicHost) -> None:
        """Unless it says the same as a moment ago. What goes wrong is kept as the problem."""
        if self._is_still_good(content):
            return
        try:
            _replace(self._folder, msgspec.json.encode(content) + b"\n")
        except OSError as error:
            self._last = None
            self.problem = f"{self._folder / NAME} cannot be written: {error.strerror}"
        else:
            self._last = content
            self.problem = ""

    def _is_still_good(self, content: PublicHost) -> bool:
        last = self._last
        if last is None or abs((content.at - last.at).total_seconds()) >= REFRESH_S:
            return False
        return msgspec.structs.replace(content, at=last.at) == last


def _replace(folder: Path, content: bytes) -> None:
    """Not synced to disk: it is worth nothing after a crash.

    Raises:
        OSError: also where others may write into the folder, as they could then lead us elsewhere.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o755)
        # Whatever the umask is.
        folder.chmod(0o755)
    inside = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if others_may_write(os.fstat(inside)):
            raise PermissionError(1, "others may write into this folder")
        temporary = f".{NAME}.tmp"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=inside)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, 0o644, dir_fd=inside), "wb") as file:
            os.fchmod(file.fileno(), 0o644)
            file.write(content)
        os.rename(temporary, NAME, src_dir_fd=inside, dst_dir_fd=inside)
    finally:
        os.close(inside)


class Unavailable(RuntimeError):
    """There is no such file, or none that this version understands; the text says so."""


def read(folder: Path, *, now: datetime) -> tuple[PublicHost, float]:
    """The content and its age in seconds by the wall clock, which is ``now``.

    Raises:
        Unavailable: it cannot be read.
    """
    path = folder / NAME
    try:
        with path.open("rb") as file:
            written_at = os.fstat(file.fileno()).st_mtime
            content = msgspec.json.decode(file.read(), type=PublicHost)
    except FileNotFoundError:
        raise Unavailable(f"{path} is not there: has the agent of this host run yet?") from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise Unavailable(f"{path} is not what this version writes: {error}") from error
    if content.version != VERSION:
        raise Unavailable(f"{path} is of version {content.version}, this is for {VERSION}")
    return content, max(0.0, now.timestamp() - written_at)
