"""The state directory of a simulated host: its devices, its people, and the real processes on them.

    devices.json      what the host claims to have
    users.json        Unix name -> uid (61001 and up; no accounts are needed)
    jobs/<pid>.json   one per job; believed only while /proc shows the same process

A job only exists and sleeps; how much it computes and holds is a function of its profile and age.
"""

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeVar, get_args

import msgspec

from workers.host import clock, processes

FIRST_UID = 61001
GIB = 2**30

T = TypeVar("T")
Profile = Literal["train", "idle", "notebook", "ignore-term"]
PROFILES: tuple[str, ...] = get_args(Profile)


class SimulationError(RuntimeError):
    """The state directory cannot be used; the text is a sentence for people."""


class SimulatedDevice(msgspec.Struct, frozen=True, kw_only=True):
    uuid: str
    index: int
    model: str
    memory_bytes: int
    minor: int
    power_limit_w: float = 400.0


class Load(msgspec.Struct, frozen=True):
    """What a job does at one moment."""

    utilization_percent: float
    memory_bytes: int


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A process on a simulated device. (boot, pid, start_ticks) tells it from a later one."""

    pid: int
    start_ticks: int
    boot: str
    device: str
    unix_name: str
    uid: int
    profile: Profile

    def age_s(self, boottime_s: float) -> float:
        return max(0.0, boottime_s - self.start_ticks / os.sysconf("SC_CLK_TCK"))


def _is_running(job: Job) -> bool:
    facts = processes.read_facts(job.pid)
    same = facts is not None and facts.start_ticks == job.start_ticks
    return same and job.boot == clock.boot_id()


def load(job: Job, *, age_s: float, memory_bytes: int) -> Load:
    """What the job does at that age on a device of that size."""
    return _LOADS[job.profile](age_s, job.pid, memory_bytes)


def _train(age_s: float, seed: int, memory_bytes: int) -> Load:
    wave = 4 * math.sin(age_s / 7 + seed) + 2 * math.sin(age_s / 1.7 + seed)
    grown = min(1.0, age_s / 20)
    return Load(91 + wave, int(memory_bytes * (0.05 + 0.55 * grown)))


def _idle(age_s: float, seed: int, memory_bytes: int) -> Load:
    return Load(0.0, memory_bytes // 2)


def _notebook(age_s: float, seed: int, memory_bytes: int) -> Load:
    spell = int(age_s // 15)
    busy = (spell * 7 + seed) % 3 == 0
    return Load(35 + (spell * 13 + seed) % 35 if busy else 0.0, int(memory_bytes * 0.15))


_LOADS: Mapping[str, Callable[[float, int, int], Load]] = {
    "train": _train,
    "ignore-term": _train,
    "idle": _idle,
    "notebook": _notebook,
}


class SimulatedHost:
    """Reads and writes the state directory ``root``. Every read sees the files as they are now."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def prepare(self, devices: list[SimulatedDevice], users: list[str]) -> None:
        """Makes the directory, or changes it to these devices and people; jobs are left alone."""
        (self.root / "jobs").mkdir(parents=True, exist_ok=True)
        uids = {name: FIRST_UID + number for number, name in enumerate(users)}
        self._write("devices.json", devices)
        self._write("users.json", uids)

    def devices(self) -> list[SimulatedDevice]:
        """By index.

        Raises:
            SimulationError: the file is missing or not of this shape.
        """
        found = self._read("devices.json", list[SimulatedDevice])
        return sorted(found, key=lambda device: device.index)

    def users(self) -> dict[str, int]:
        return self._read("users.json", dict[str, int])

    def jobs(self) -> list[Job]:
        """The jobs whose process is alive, by pid. Files of others are removed."""
        alive = []
        for path in sorted((self.root / "jobs").glob("*.json")):
            job = self._job(path)
            if job and _is_running(job):
                alive.append(job)
            else:
                path.unlink(missing_ok=True)
        return sorted(alive, key=lambda job: job.pid)

    def register(self, job: Job) -> None:
        """Puts the job on its device."""
        self._write(f"jobs/{job.pid}.json", job)

    def _job(self, path: Path) -> Job | None:
        try:
            return msgspec.json.decode(path.read_bytes(), type=Job)
        except (OSError, msgspec.DecodeError):
            return None

    def _write(self, name: str, content: object) -> None:
        path = self.root / name
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_bytes(msgspec.json.encode(content))
        temporary.replace(path)

    def _read(self, name: str, shape: type[T]) -> T:
        path = self.root / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=shape)
        except FileNotFoundError:
            raise SimulationError(
                f"{path} is missing; `python -m workers.host.simjob prepare` makes it"
            ) from None
        except (OSError, msgspec.DecodeError) as error:
            raise SimulationError(f"{path} cannot be read: {error}") from error
