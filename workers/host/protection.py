"""Who must never be stopped, decided by uid, place and unit, never by a process's name.

Anybody can call a program `Xorg`; nobody can choose their uid.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workers.host.containers import Claim, Container, container_of, slice_owner
from workers.host.processes import Facts

# Display servers, persistenced, dcgm, MPS control, fabric manager and container shims run as root
# or under uids below this (/etc/login.defs, UID_MIN).
FIRST_PERSON_UID = 1000
NOBODY_UID = 65534
# What systemd makes up for services with `DynamicUser=yes` (systemd.exec(5)).
DYNAMIC_UIDS = range(61184, 65520)
# No account that a machine makes by itself has a uid from here on; what is handed out for use in
# user namespaces does (/etc/login.defs, SUB_UID_MIN).
FIRST_SUBORDINATE_UID = 100_000

_SLURM = re.compile(r"/(?:[^/]*_)?slurm(?:stepd)?(?:[._/][^/]*)?(?:/uid_\d+)?/job_\d+")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the agent knows of the machine before it looks: its own tree, and the largest pid.

    ``own_container`` is the id of the one that the agent itself runs in.
    """

    own_pids: frozenset[int]
    pid_max: int
    own_container: str | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Whose a process is: a container's of the machine's engines, or else a person's.

    ``claim`` is what an engine said of that container; None while it has not. ``person`` is None
    for a uid of a user namespace that stands for nobody.
    """

    person: int | None
    container: Container | None = None
    claim: Claim | None = None

    @property
    def whose(self) -> str | int | None:
        """The same for processes that belong together."""
        return self.container.id if self.container else self.person


def pid_max(proc: Path = Path("/proc")) -> int:
    """The kernel's limit; no pid reaches it."""
    return int((proc / "sys/kernel/pid_max").read_text())


def nobodys(uid: int) -> int | None:
    """Whose subordinate uid this is, where nothing is known of any."""
    return None


def person_of(
    facts: Facts,
    *,
    uid: int | None = None,
    subordinate_owner: Callable[[int], int | None] = nobodys,
) -> int | None:
    """The uid of the person behind a process: the real one, also while a setuid program runs.

    In a user namespace of its own it may be a subordinate one, which stands for whoever it was handed
    out to, or else for whoever made the namespace; None where that is nobody.
    """
    if uid is None:
        uid = facts.uid if is_person(facts.uid) else facts.euid
    if facts.namespace_owner is None:
        return uid
    owner = subordinate_owner(uid)
    if owner is None and uid < FIRST_SUBORDINATE_UID:
        return uid
    behind = (owner, facts.namespace_owner, slice_owner(facts.cgroups))
    return next((one for one in behind if one is not None and is_person(one)), None)


def protection(facts: Facts, bounds: Bounds, place: Place) -> str | None:
    """Why this process must not be stopped, or None.

    What becomes of a container of no booking is for the core to say, by the host's settings.
    """
    reasons = (
        (not 1 < facts.pid < bounds.pid_max, "not a process of anybody"),
        (facts.pid in bounds.own_pids, "the agent's own tree"),
        (facts.kernel_thread, "a kernel thread"),
        (_slurm_job(facts) is not None, "a Slurm job: Slurm ends it"),
        (_is_dynamic_users(facts), "a system service with an account of its own"),
    )
    found = next((text for holds, text in reasons if holds), None)
    return found or (_of_person(place) if place.container is None else _of_container(place, bounds))


def _of_person(place: Place) -> str | None:
    if place.person is None:
        return "a uid of a container that is handed out to nobody"
    return None if is_person(place.person) else "root or a system account"


def _of_container(place: Place, bounds: Bounds) -> str | None:
    if place.container is not None and place.container.id == bounds.own_container:
        return "the agent's own container"
    if place.claim is None:
        return "a container whose booking is not known yet"
    return None


def is_person(uid: int) -> bool:
    return uid >= FIRST_PERSON_UID and uid != NOBODY_UID


def _slurm_job(facts: Facts) -> str | None:
    """Its job of Slurm's; below a user's slice anybody may make groups with such a name."""
    for path in facts.cgroups:
        found = _SLURM.search(path)
        if found and slice_owner((path,)) is None:
            return found.group().strip("/")[:100]
    return None


def _is_dynamic_users(facts: Facts) -> bool:
    in_a_service = any(path.startswith("/system.slice/") for path in facts.cgroups)
    return in_a_service and facts.uid in DYNAMIC_UIDS


def unit_of(facts: Facts) -> str | None:
    """The container, job or service that a process runs in, for people to read."""
    container = container_of(facts.cgroups)
    if container is not None:
        return container.name
    if job := _slurm_job(facts):
        return job
    for path in facts.cgroups:
        last = path.rsplit("/", 1)[-1]
        if last.endswith((".service", ".scope")):
            return last[:100]
    return None
