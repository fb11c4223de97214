"""Containers: which one a process runs in, and which booking that was started for.

The booking is a claim: the label ``berth.booking=<id>``, which whoever started the container has
written. It is believed because only somebody who may use the machine's own engine can write it, and
they are as good as root: they could as well have started the container on any device, whatever a gate
says. So only the machine's own engines are asked. What a person starts without root (rootless podman
or docker) lies below their user slice and is theirs, whatever its labels say.
"""

import re
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from workers.host.asker import NoAnswerError
from workers.host.programs import ProgramMissingError, ProgramSilentError, ask_program

Engine = Literal["docker", "podman"]

BOOKING_LABEL = "berth.booking"
# An engine that is well answers in a few hundredths of a second.
LIMIT_S = 5.0
# One that hangs would keep the questions to the others waiting.
LEFT_ALONE_S = 50.0

_ID = r"[0-9a-f]{64}"
# One part of a path ends with the id: docker-<id>.scope, cri-containerd-<id>.scope, crio-<id>,
# libpod-<id>.scope, libpod-payload-<id>, or the bare <id> of the cgroupfs driver.
# conmon, which watches over a container of podman, has a group of its own with the same id.
_CONTAINER = re.compile(
    rf"/(?:(?P<prefix>[a-z][a-z0-9-]*)(?<!-conmon)-|[^/]*:)?(?P<id>{_ID})(?:\.scope)?(?=/|$)"
)
# Of a pod without a container of its own, only the pod is known.
_POD = re.compile(r"/kubepods[^/]*(?:/.*?)?[/-](?P<id>pod[0-9a-f]{8}[-_][0-9a-f]{4}[-_0-9a-f]*)")
# Only at the top: further down the name may be of a container's own making. Seen from below, it begins
# with steps up.
_USER_SLICE = re.compile(r"(?:/\.\.)*/user\.slice/user-(\d+)\.slice")
# `Error: No such container: …` (docker), `Error: no such container …` (podman).
_SAYS_NO = (b"no such container",)


@dataclass(frozen=True, slots=True)
class Container:
    """``engines`` may know it; none does where Kubernetes looks after it.

    ``rootless``: a person has started it without root, so that it is theirs.
    """

    id: str
    name: str
    engines: tuple[Engine, ...]
    rootless: bool


@dataclass(frozen=True, slots=True)
class Claim:
    """What an engine says of a container. ``engine`` is None where none knows it."""

    engine: Engine | None = None
    booking: int | None = None


def container_of(cgroups: Iterable[str]) -> Container | None:
    """The container that these cgroup paths of a process lie in: the outermost, if there are more.

    Only that one is known to the engine of the machine.
    """
    paths = tuple(cgroups)
    for path in paths:
        found = _CONTAINER.search(path) or _POD.search(path)
        if found is None:
            continue
        last = found.group().rsplit("/", 1)[-1]
        return Container(
            id=found["id"],
            name=last.removesuffix(".scope")[:100],
            engines=_engines(path[: found.start() + 1], last),
            rootless=slice_owner(paths) is not None,
        )
    return None


def _engines(above: str, name: str) -> tuple[Engine, ...]:
    if "/kubepods" in above + name or ":" in name:
        return ()
    if name.startswith("libpod-"):
        return ("podman",)
    if name.startswith("docker-") or above == "/docker/":
        return ("docker",)
    return ("docker", "podman") if re.match(_ID, name) else ()


def slice_owner(cgroups: Iterable[str]) -> int | None:
    """The uid of the person whose session or user manager these paths belong to."""
    for path in cgroups:
        found = _USER_SLICE.match(path)
        if found:
            return int(found.group(1))
    return None


class _Config(msgspec.Struct, rename="pascal"):
    labels: dict[str, str] | None = None


class _Inspected(msgspec.Struct, rename="pascal"):
    id: str
    config: _Config


class Engines:
    """Asks the engines of this machine. One that hangs is left alone for a while. For one thread."""

    def __init__(self) -> None:
        self._silent_until: dict[Engine, float] = {}

    def ask(self, container: Container) -> Claim:
        """Which engine knows this container, and for which booking it was started.

        Raises:
            NoAnswerError: one that may know it could not be asked.
        """
        installed = [one for one in container.engines if shutil.which(one)]
        for engine in installed or container.engines:
            labels = self._labels(engine, container.id)
            if labels is not None:
                return Claim(engine, booking_in(labels))
        return Claim()

    def _labels(self, engine: Engine, container: str) -> Mapping[str, str] | None:
        """None where the engine does not know it."""
        now = time.monotonic()
        if now < self._silent_until.get(engine, now):
            raise NoAnswerError(_cannot_ask(engine, f"no answer within {LIMIT_S:g} s"))
        argv = (engine, "inspect", "--type", "container", container)
        try:
            code, out, err = ask_program(argv, limit_s=LIMIT_S)
        except ProgramSilentError as error:
            self._silent_until[engine] = time.monotonic() + LEFT_ALONE_S
            raise NoAnswerError(_cannot_ask(engine, f"no answer within {LIMIT_S:g} s")) from error
        except ProgramMissingError as error:
            raise NoAnswerError(_cannot_ask(engine, str(error))) from error
        if code != 0:
            if any(text in err.lower() for text in _SAYS_NO):
                return None
            raise NoAnswerError(_cannot_ask(engine, err.decode(errors="replace").strip()))
        return _labels_in(out, engine=engine, container=container)


def _labels_in(out: bytes, *, engine: Engine, container: str) -> Mapping[str, str]:
    try:
        (found,) = msgspec.json.decode(out, type=list[_Inspected])
    except (msgspec.DecodeError, ValueError) as error:
        raise NoAnswerError(_cannot_ask(engine, str(error))) from error
    if found.id != container:
        raise NoAnswerError(_cannot_ask(engine, "it answers about another container"))
    return found.config.labels or {}


def _cannot_ask(engine: Engine, why: str) -> str:
    return f"{engine} does not say for which bookings its containers were started: {why}"[:300]


def booking_in(labels: Mapping[str, str]) -> int | None:
    """The booking that is claimed; None where none is, or what is written is no booking's number."""
    text = labels.get(BOOKING_LABEL, "")
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,17}", text) else None
