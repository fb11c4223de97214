"""Who must never be stopped, decided by uid, place and unit, never by a process's name.

Anybody can call a program `Xorg`; nobody can choose their uid.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from workers.host.processes import Facts

# Display servers, persistenced, dcgm, MPS control, fabric manager and container shims run as root
# or under uids below this (/etc/login.defs, UID_MIN).
FIRST_PERSON_UID = 1000
NOBODY_UID = 65534
# First uid that /etc/subuid hands out: such a uid stands for the person whose slice it runs in.
FIRST_SUBORDINATE_UID = 100_000

_USER_SLICE = re.compile(r"/user-(\d+)\.slice")
_CONTAINER = re.compile(
    r"(?:docker[-/]|cri-containerd[-:]|crio-|libpod-)[0-9a-f]{64}"
    r"|kubepods[./].*pod[0-9a-f]{8}[-_][0-9a-f]{4}"
)
_SLURM = re.compile(r"/slurm(?:stepd)?(?:[._/][^/]*)?(?:/uid_\d+)?/job_\d+")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the agent knows of the machine before it looks: its own tree, and the largest pid."""

    own_pids: frozenset[int]
    pid_max: int


def pid_max(proc: Path = Path("/proc")) -> int:
    """The kernel's limit; no pid reaches it."""
    return int((proc / "sys/kernel/pid_max").read_text())


def person_of(facts: Facts) -> int:
    """The uid of the person behind a process: the real one, also while a setuid program runs.

    In a rootless container the uid may be a subordinate one: then the owner of the user slice.
    """
    uid = facts.uid if _is_person(facts.uid) else facts.euid
    owner = _slice_owner(facts.cgroups)
    if owner is not None and uid >= FIRST_SUBORDINATE_UID:
        return owner
    return uid


def protection(facts: Facts, bounds: Bounds) -> str | None:
    """Why this process must not be stopped, or None."""
    reasons = (
        (not 1 < facts.pid < bounds.pid_max, "not a process of anybody"),
        (facts.pid in bounds.own_pids, "the agent's own tree"),
        (facts.kernel_thread, "a kernel thread"),
        (_matches(_SLURM, facts.cgroups), "a Slurm job: Slurm ends it"),
        (_is_foreign_container(facts.cgroups), "a container that belongs to no booking"),
        (not _is_person(person_of(facts)), "root or a system account"),
    )
    return next((text for holds, text in reasons if holds), None)


def _is_person(uid: int) -> bool:
    return uid >= FIRST_PERSON_UID and uid != NOBODY_UID


def _is_foreign_container(cgroups: Iterable[str]) -> bool:
    """A container inside a user slice is rootless, and its owner is known."""
    paths = tuple(cgroups)
    return _matches(_CONTAINER, paths) and _slice_owner(paths) is None


def _matches(pattern: re.Pattern[str], cgroups: Iterable[str]) -> bool:
    return any(pattern.search(path) for path in cgroups)


def unit_of(facts: Facts) -> str | None:
    """The container, job or service that a process runs in, for people to read."""
    for path in facts.cgroups:
        found = _CONTAINER.search(path) or _SLURM.search(path)
        if found:
            return found.group().strip("/")[:100]
        last = path.rsplit("/", 1)[-1]
        if last.endswith((".service", ".scope")):
            return last[:100]
    return None


def _slice_owner(cgroups: Iterable[str]) -> int | None:
    for path in cgroups:
        found = _USER_SLICE.search(path)
        if found:
            return int(found.group(1))
    return None
