"""Whose subordinate uids are whose: /etc/subuid, read and resolved in a thread of its own.

Its lines name people, and a name service may hang. Until it has answered, their uids are nobody's.
"""

import pwd
import time
from dataclasses import dataclass
from pathlib import Path

from workers.host.asker import Asker, NoAnswerError

SUBUID = Path("/etc/subuid")
# The file is a local one: a look at its time of change once a minute costs nothing.
LOOK_EVERY_S = 60.0


@dataclass(frozen=True, slots=True)
class Range:
    """``owner`` is None where the name in the file belongs to nobody here."""

    first: int
    count: int
    owner: int | None

    def __contains__(self, uid: int) -> bool:
        return self.first <= uid < self.first + self.count


class Subordinates:
    """For one thread, which is never held up."""

    def __init__(self, path: Path = SUBUID) -> None:
        self._path = path
        self._asker: Asker[int | None, tuple[Range, ...]] = Asker(
            self._read, name="subordinate uids", keep_s=float("inf")
        )
        self._version: int | None = None
        self._look_at = 0.0
        self._ranges: tuple[Range, ...] = ()

    def owner_of(self, uid: int) -> int | None:
        """The person whose subordinate uid this is; None where it is nobody's, or not known yet."""
        self._look()
        return next((one.owner for one in self._ranges if uid in one), None)

    def _look(self) -> None:
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_S
            self._version = _changed_at(self._path)
        ranges = self._asker.answer(self._version)
        if ranges is not None and ranges is not self._ranges:
            self._ranges = ranges
            self._asker.keep_only((self._version,))

    def _read(self, version: int | None) -> tuple[Range, ...]:
        if version is None:
            return ()
        try:
            lines = self._path.read_text(errors="replace").splitlines()
        except OSError as error:
            raise NoAnswerError(f"{self._path} cannot be read: {error}") from error
        found = (_range_in(line) for line in lines)
        return tuple(one for one in found if one is not None)


def _changed_at(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def _range_in(line: str) -> Range | None:
    """``name:first:count`` or ``uid:first:count``; None for anything else."""
    name, _, rest = line.strip().partition(":")
    first, _, count = rest.partition(":")
    if not (name and first.isdecimal() and count.isdecimal()):
        return None
    return Range(first=int(first), count=int(count), owner=_uid_of(name))


def _uid_of(name: str) -> int | None:
    if name.isdecimal():
        return int(name)
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None
