"""The kernel's table of leases, and the one program that obeys it, on the control groups it is to hold.

Both stay when the process that made them dies, and are found again by their name: one program for
ever, never a second one on top. Attached to parents only, since engines clean up the groups of their containers.
"""

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from workers.host.gates import bpf_calls as bpf
from workers.host.gates.lease_program import ANYBODY, KEY, VALUE, code

logger = logging.getLogger(__name__)

# The number is that of the program's text: another text is another program.
PREFIX = "berth_gate_"
NAME = f"{PREFIX}1"
ENTRIES = 4096

Key = tuple[int, int]
"""Uid, or `ANYBODY`, and the device's number (st_rdev)."""


class Unavailable(RuntimeError):
    """This host cannot keep leases in its kernel; the text says why."""


class LeaseTable:
    """For one thread. Nothing is attached before `attach`."""

    def __init__(self, groups: Sequence[str]) -> None:
        """Finds what an earlier agent left, or makes both anew.

        Raises:
            Unavailable: there is no such control group, or the kernel refuses.
        """
        _require(groups)
        self._groups = groups
        # By control group that has the program: the group's inode, since one may be made anew.
        self._on: dict[str, int] = {}
        try:
            self._program, self._table = self._find() or _make()
            self._identity, _, _ = bpf.describe(self._program)
        except OSError as error:
            raise Unavailable(f"the kernel refuses the program: {error.strerror}") from error

    def read(self) -> Mapping[Key, int]:
        """Until when, in nanoseconds of CLOCK_BOOTTIME.

        Raises:
            OSError: The kernel refuses; so does everything below.
        """
        found: dict[Key, int] = {}
        for key in bpf.keys(self._table, key_bytes=KEY.size):
            value = bpf.lookup(self._table, key, value_bytes=VALUE.size)
            if value is not None:
                uid, major, minor = KEY.unpack(key)
                (found[uid, os.makedev(major, minor)],) = VALUE.unpack(value)
        return found

    def write(self, entries: Mapping[Key, int]) -> None:
        for key, until_ns in entries.items():
            bpf.update(self._table, _packed(key), VALUE.pack(until_ns))

    def remove(self, keys: Iterable[Key]) -> None:
        """`ANYBODY` first: without it the device is gated no more, and nobody is refused in between."""
        for key in sorted(keys, key=lambda key: key[0] != ANYBODY):
            bpf.delete(self._table, _packed(key))

    def attach(self) -> None:
        """To every group that is there and has it not."""
        for group in self._present():
            if self._identity not in bpf.attached(group):
                bpf.attach(self._program, group)
                logger.info("group=%s: the kernel keeps leases", group)
            self._on[group] = os.stat(group).st_ino

    def attach_to_new(self) -> None:
        """To those groups that came into being since."""
        if any(self._on.get(group) != os.stat(group).st_ino for group in self._present()):
            self.attach()

    def detach(self) -> None:
        self._on = {}
        for group in self._present():
            if self._identity in bpf.attached(group):
                bpf.detach(self._program, group)

    def stands(self) -> bool:
        """Whether it is still on every group that it was put on."""
        return all(
            self._identity in bpf.attached(group)
            for group in self._present()
            if self._on.get(group) == os.stat(group).st_ino
        )

    def _present(self) -> list[str]:
        return [group for group in self._groups if os.path.isdir(group)]

    def _find(self) -> tuple[bpf.Handle, bpf.Handle] | None:
        """What an earlier agent left; all but one of it is taken off, wherever that should not be."""
        kept: tuple[bpf.Handle, bpf.Handle] | None = None
        kept_identity = None
        for group, identity, program in _ours([*self._present(), *_beside(self._groups)]):
            _, name, table = bpf.describe(program)
            wanted = group in self._groups and name == NAME and table is not None
            if wanted and kept is None and table is not None:
                kept, kept_identity = (program, bpf.map_of(table)), identity
            if wanted and identity == kept_identity:
                self._on[group] = os.stat(group).st_ino
            else:
                bpf.detach(program, group)
        return kept


def control_groups(slices: Sequence[str], *, mounts: Path = Path("/proc/self/mounts")) -> list[str]:
    """Their folders, below where version 2 is mounted.

    Raises:
        Unavailable: it is not.
    """
    for line in mounts.read_text().splitlines():
        _, folder, kind, *_ = line.split()
        if kind == "cgroup2":
            return [os.path.join(folder, one) for one in slices]
    raise Unavailable("control groups of version 2 are not mounted")


def obstacle(slices: Sequence[str], *, mounts: Path) -> str:
    """Why this kernel cannot keep leases; empty where it can. Tries, and changes nothing."""
    try:
        groups = control_groups(slices, mounts=mounts)
        _require(groups)
        _make()
        for group in filter(os.path.isdir, groups):
            bpf.attached(group)
    except Unavailable as error:
        return str(error)
    except OSError as error:
        return f"the kernel refuses the program: {error.strerror}"
    return ""


def _require(groups: Sequence[str]) -> None:
    if not any(map(os.path.isdir, groups)):
        raise Unavailable(f"there is no control group {' or '.join(groups)}")


def _make() -> tuple[bpf.Handle, bpf.Handle]:
    table = bpf.create_map(NAME, key_bytes=KEY.size, value_bytes=VALUE.size, entries=ENTRIES)
    return bpf.load_device_program(code(table.number), name=NAME), table


def _ours(groups: Iterable[str]) -> Iterator[tuple[str, int, bpf.Handle]]:
    """Each program of an agent: its group, its id and itself."""
    for group in dict.fromkeys(groups):
        for identity in bpf.attached(group):
            program = bpf.program_of(identity)
            if bpf.describe(program)[1].startswith(PREFIX):
                yield group, identity, program


def _beside(groups: Iterable[str]) -> list[str]:
    """Their neighbours, which may have been configured in their place before."""
    # Only version 2 has that file, so what lies around the mount itself is none.
    parents = {
        Path(group).parent for group in groups if Path(group, "../cgroup.controllers").exists()
    }
    return [
        str(path)
        for parent in parents
        if parent.is_dir()
        for path in parent.iterdir()
        if path.is_dir()
    ]


def _packed(key: Key) -> bytes:
    uid, number = key
    return KEY.pack(uid, os.major(number), os.minor(number))
