"""Who may open one file, as its file system keeps it: owner, group, mode and list; read and written whole."""

import errno
import os
import stat

import msgspec

from workers.host.gates.posix_acl import ATTRIBUTE
from workers.host.statx import born_ns


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """``mode``: the twelve bits that chmod sets. ``acl`` as the kernel has it; None without one."""

    uid: int
    gid: int
    mode: int
    acl: bytes | None = None


def read(path: str) -> Access:
    """Everything about who may open it.

    Raises:
        OSError: It is missing, or its file system keeps no lists.
    """
    found = os.stat(path)
    return Access(
        uid=found.st_uid, gid=found.st_gid, mode=stat.S_IMODE(found.st_mode), acl=_acl(path)
    )


def write(path: str, access: Access) -> None:
    """The owner first, who may open it whatever the list says. What is so already is not touched."""
    found = read(path)
    if (found.uid, found.gid) != (access.uid, access.gid):
        os.chown(path, access.uid, access.gid)
    if access.acl is not None:
        # Also where it is equal: a mode that was changed has changed the list's mask, and this both.
        os.setxattr(path, ATTRIBUTE, access.acl)
    elif found.acl is not None:
        os.removexattr(path, ATTRIBUTE)
    if stat.S_IMODE(os.stat(path).st_mode) != access.mode:
        os.chmod(path, access.mode)


def identity(path: str) -> str:
    """Tells a node from another one that is made later in its place.

    Inode numbers alone do not: some file systems use them again.
    """
    found = os.stat(path)
    return f"{found.st_dev}:{found.st_ino}:{found.st_rdev}:{born_ns(path)}"


def _acl(path: str) -> bytes | None:
    try:
        return os.getxattr(path, ATTRIBUTE)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        return None
