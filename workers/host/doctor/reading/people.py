"""Accounts, groups and home folders, from files alone: asking a directory may hang."""

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from workers.host.doctor.facts import Account, Group, Home, People
from workers.host.doctor.reading.files import Roots, text

# Below are the system's own accounts; 65534 is nobody.
_FIRST_UID, _NOBODY = 1000, 65534
# Elsewhere a look at a folder may wait for a server that is gone.
_LOCAL = frozenset({"btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs", "zfs"})


def read(roots: Roots) -> People:
    passwd, group = text(roots.etc / "passwd"), text(roots.etc / "group")
    users = [row for row in _rows(passwd or "") if len(row) >= 6 and row[2].isdecimal()]
    accounts = [Account(name=row[0], uid=int(row[2]), home=row[5]) for row in users]
    mounts = _mounts(text(roots.proc / "self/mounts") or "")
    return People(
        accounts=None if passwd is None else tuple(accounts),
        groups=None if group is None else tuple(_groups(group, users)),
        homes=tuple(_homes(accounts, mounts, roots.top)),
    )


def _rows(content: str) -> list[list[str]]:
    return [line.split(":") for line in content.splitlines()]


def _groups(content: str, users: Iterable[list[str]]) -> Iterator[Group]:
    """Members by /etc/group, and whose first group it is."""
    for row in _rows(content):
        if len(row) >= 4 and row[2].isdecimal():
            first = [user[0] for user in users if user[3] == row[2]]
            named = [name.strip() for name in row[3].split(",") if name.strip()]
            yield Group(name=row[0], gid=int(row[2]), members=tuple(sorted({*named, *first})))


def _homes(accounts: Iterable[Account], mounts: dict[str, str], top: Path) -> Iterator[Home]:
    for account in accounts:
        if account.uid < _FIRST_UID or account.uid == _NOBODY or not account.home.startswith("/"):
            continue
        if _kind_of(account.home, mounts) not in _LOCAL:
            continue
        try:
            found = (top / account.home.lstrip("/")).lstat()
        except OSError:
            continue
        if stat.S_ISDIR(found.st_mode):
            yield Home(path=account.home, mode=stat.S_IMODE(found.st_mode))


def _mounts(content: str) -> dict[str, str]:
    """The kind of file system at each mount point; a later mount hides an earlier one."""
    rows = (line.split() for line in content.splitlines())
    return {row[1]: row[2] for row in rows if len(row) > 2}


def _kind_of(path: str, mounts: dict[str, str]) -> str:
    points = [point for point in mounts if (path + "/").startswith(point.rstrip("/") + "/")]
    return mounts[max(points, key=len)] if points else ""
