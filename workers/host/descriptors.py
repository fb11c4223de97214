"""Which processes have a device open, found by device number in /proc.

By number and not by path: a container has nodes of its own. `readlink` sorts out sockets and pipes,
`statx` without sync reads the rest, because a plain stat hangs on a dead network mount.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from workers.host.room import check_room
from workers.host.statx import device_number

_PSEUDO_FILES = ("socket:[", "pipe:[", "anon_inode:")


def numbers_of(paths: Iterable[str]) -> frozenset[int]:
    """The device numbers behind these nodes; a node that is missing has none."""
    numbers = set()
    for path in paths:
        try:
            number = device_number(path)
        except OSError as error:
            check_room(error)
            continue
        if number is not None:
            numbers.add(number)
    return frozenset(numbers)


class DescriptorScan:
    """Repeated scans, made cheap by remembering processes that hold none of the devices.

    Such a process can gain one only by opening it, so nothing is remembered of people who may. What
    is inherited or passed on meanwhile is found by the full scan that the caller asks for at times.
    """

    def __init__(self, proc: Path, only_uids: frozenset[int] | None = None) -> None:
        self._proc = proc
        self._only_uids = only_uids
        self._clean: set[tuple[int, int, int]] = set()
        self._numbers: frozenset[int] = frozenset()

    def find(
        self, numbers: frozenset[int], *, may_open: frozenset[int] | None
    ) -> dict[int, frozenset[int]]:
        """Each holding pid with those of ``numbers`` that it has open.

        ``may_open``: the uids that can open any of them now; None when that may be anybody.
        """
        if self._numbers != numbers:
            self.forget()
            self._numbers = numbers
        found, clean = {}, set()
        for pid, key in self._processes() if numbers else ():
            locked_out = may_open is not None and key[2] not in may_open
            if locked_out and key in self._clean:
                clean.add(key)
                continue
            held = numbers & held_numbers(pid, self._proc)
            if held:
                found[pid] = held
            elif locked_out:
                clean.add(key)
        self._clean = clean
        return found

    def forget(self) -> None:
        """Make the next scan a full one."""
        self._clean = set()

    def _processes(self) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """Every pid with what tells it from a later one: ctime of its folder, and its uid."""
        with os.scandir(self._proc) as entries:
            for entry in entries:
                if not entry.name.isdigit():
                    continue
                try:
                    found = entry.stat()
                except OSError:
                    continue
                if self._only_uids is None or found.st_uid in self._only_uids:
                    pid = int(entry.name)
                    yield pid, (pid, found.st_ctime_ns, found.st_uid)


def held_numbers(pid: int, proc: Path = Path("/proc")) -> frozenset[int]:
    """The device numbers that a process has open, in any of its threads; none once it is gone."""
    held = _numbers_in(f"{proc}/{pid}/fd")
    if held is not None:
        return held
    # The main thread has ended: the folder is empty, the others still hold the table.
    return held_somewhere(pid, proc)


def held_somewhere(pid: int, proc: Path = Path("/proc")) -> frozenset[int]:
    """What each of its threads has open: one may have a table of its own, away from the others'.

    Dear for programs with many threads, so only for those that are said to hold a device.
    """
    try:
        threads = os.listdir(f"{proc}/{pid}/task")
    except OSError as error:
        check_room(error)
        return frozenset()
    tables = (_numbers_in(f"{proc}/{pid}/task/{thread}/fd") for thread in threads)
    return frozenset().union(*(table for table in tables if table))


def _numbers_in(folder: str) -> frozenset[int] | None:
    """The device numbers in one descriptor table; None when it is empty or cannot be listed."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        check_room(error)
        return None
    if not names:
        return None
    numbers = set()
    for name in names:
        try:
            number = _number_at(f"{folder}/{name}")
        except OSError as error:
            check_room(error)
            continue  # closed since it was listed, or on a mount that is dead
        if number is not None:
            numbers.add(number)
    return frozenset(numbers)


def _number_at(path: str) -> int | None:
    if os.readlink(path).startswith(_PSEUDO_FILES):
        return None
    return device_number(path)
