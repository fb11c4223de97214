"""What starts a process again when it is ended: a service with `Restart=`, named only where that is safe.

Stopping a service ends all that is in it. So it is named only when every process in its cgroup is the
one person's: never a session, a login, or a service in which many people's jobs run, as cron's or
ssh's. Containers are kept by their engine (`containers.py`).
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from reservations.core.enforcement import Keeper
from workers.host.asker import NoAnswerError
from workers.host.processes import PROC, read_facts
from workers.host.programs import ProgramMissingError, ProgramSilentError, ask_program
from workers.host.protection import person_of

CGROUP_ROOT = Path("/sys/fs/cgroup")
# Where systemd's own tree is mounted: version 2, hybrid, version 1.
_TREES = ("", "unified", "systemd")
LIMIT_S = 5.0

_MANAGER = re.compile(r"user@(\d+)\.service")
# Jobs of many, or the way into the machine. A line of defence behind the look at who is in it.
_NEVER = re.compile(
    r"(?:cron|crond|atd|ssh|sshd|dbus|dbus-broker|user|user-runtime-dir|getty|[a-z]+-getty)"
    r"(?:@.*)?\.service"
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A service, and the cgroup that is its own. ``owner``: whose manager runs it; None: the machine's."""

    name: str
    cgroup: str
    owner: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """By what; None: by nothing that may be stopped."""

    keeper: Keeper | None = None


def unit_in(cgroups: Iterable[str]) -> Unit | None:
    """The service that these cgroup paths of a process lie in, if it is one that could be stopped."""
    for path in cgroups:
        owner: int | None = None
        parts = path.split("/")
        for number, part in enumerate(parts):
            manager = _MANAGER.fullmatch(part)
            if manager:
                owner = int(manager[1])
            elif part.endswith(".service"):
                safe = ".." not in parts and not _NEVER.fullmatch(part)
                return Unit(part, "/".join(parts[: number + 1]), owner) if safe else None
    return None


def ask_systemd(unit: Unit, person: int, *, root: Path = CGROUP_ROOT, proc: Path = PROC) -> Kept:
    """Whether this service starts the person's processes again, and nobody else's are in it.

    Raises:
        NoAnswerError: systemd could not be asked.
    """
    says = _shown(unit)
    restarts = says.get("Restart", "no") != "no"
    is_meant = says.get("ControlGroup") == unit.cgroup and says.get("RefuseManualStop") != "yes"
    if not (restarts and is_meant and is_all_of(person, unit.cgroup, root=root, proc=proc)):
        return Kept()
    return Kept(Keeper(engine="systemd", name=unit.name, owner=unit.owner))


def is_all_of(person: int, cgroup: str, *, root: Path = CGROUP_ROOT, proc: Path = PROC) -> bool:
    """Whether every process in this cgroup and below is this person's; also False where it is empty."""
    trees = [folder for tree in _TREES if (folder := root / tree / cgroup.lstrip("/")).is_dir()]
    try:
        pids = {pid for folder in trees for pid in _pids_below(folder)}
    except OSError:
        return False
    facts = [found for pid in pids if (found := read_facts(pid, proc)) is not None]
    return bool(facts) and all(
        person_of(one) == person and person_of(one, uid=one.euid) == person for one in facts
    )


def _pids_below(folder: Path) -> Iterator[int]:
    for place, _, files in os.walk(folder):
        if "cgroup.procs" in files:
            yield from map(int, (Path(place) / "cgroup.procs").read_text().split())


def systemctl(owner: int | None, *words: str) -> tuple[str, ...]:
    """What to call, of the machine's own manager, or of this person's."""
    manager = () if owner is None else ("--user", f"--machine={owner}@.host")
    return ("systemctl", *manager, *words)


def _shown(unit: Unit) -> dict[str, str]:
    properties = "--property=Restart,ControlGroup,RefuseManualStop"
    argv = systemctl(unit.owner, "show", properties, "--", unit.name)
    try:
        code, out, err = ask_program(argv, limit_s=LIMIT_S)
    except (ProgramMissingError, ProgramSilentError) as error:
        raise NoAnswerError(_cannot_ask(str(error))) from error
    if code != 0:
        raise NoAnswerError(_cannot_ask(err.decode(errors="replace").strip()))
    lines = (line.partition("=") for line in out.decode(errors="replace").splitlines())
    return {name: value for name, _, value in lines}


def _cannot_ask(why: str) -> str:
    return f"systemd does not say which services start their processes again: {why}"[:300]
