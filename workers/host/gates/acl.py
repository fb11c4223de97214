"""The gate of a bare host: a POSIX ACL on each device node.

The ACL is replaced whole, never added to. Its mask stays `rw` (the mask *is* the group bits of the
mode), so the node keeps reading 0660 and the driver's helper, which compares the mode alone, leaves
it in peace. Closing never touches descriptors that are open.
"""

import contextlib
import errno
import os
import struct
from collections.abc import Iterable, Mapping, Sequence

from reservations.core.enforcement import GateState
from workers.host.gates.base import GateError

ATTRIBUTE = "system.posix_acl_access"
# include/uapi/linux/posix_acl.h and posix_acl_xattr.h
VERSION = 2
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NO_ID = 0xFFFFFFFF
READ_WRITE = 6

Entry = tuple[int, int, int]
"""Tag, permissions, id."""


def encode(entries: Iterable[Entry]) -> bytes:
    """The kernel's form: a version word, then tag, permissions and id of each entry."""
    return struct.pack("<I", VERSION) + b"".join(struct.pack("<HHI", *one) for one in entries)


def decode(content: bytes) -> tuple[Entry, ...]:
    """The entries of an attribute.

    Raises:
        ValueError: It is not of the version that is known here, or cut short.
    """
    if len(content) < 4 or (len(content) - 4) % 8:
        raise ValueError(f"an ACL of {len(content)} bytes")
    (version,) = struct.unpack_from("<I", content)
    if version != VERSION:
        raise ValueError(f"ACL version {version}")
    return tuple(struct.iter_unpack("<HHI", content[4:]))


def entries_for(uids: Iterable[int], *, group_open: bool) -> tuple[Entry, ...]:
    """The whole ACL, in the order that the kernel asks for."""
    return (
        (USER_OBJ, READ_WRITE, NO_ID),
        *((USER, READ_WRITE, uid) for uid in sorted(set(uids) - {0})),
        (GROUP_OBJ, READ_WRITE if group_open else 0, NO_ID),
        (MASK, READ_WRITE, NO_ID),
        (OTHER, 0, NO_ID),
    )


class AclGate:
    """Gates the nodes of each device, given by path; each keeps its group."""

    def __init__(self, nodes: Mapping[str, Sequence[str]]) -> None:
        self._nodes = nodes

    def observe(self) -> Mapping[str, GateState | None]:
        return {device: self._observe(paths) for device, paths in self._nodes.items()}

    def set(self, device: str, uids: Iterable[int], *, group_open: bool) -> None:
        content = encode(entries_for(uids, group_open=group_open))
        for path in self._paths(device):
            try:
                _own(path)
                os.setxattr(path, ATTRIBUTE, content)
            except OSError as error:
                raise GateError(f"{path} cannot be gated: {error.strerror}") from error

    def restore(self, device: str) -> None:
        """Without the ACL the mode speaks again: owner and access group."""
        for path in self._paths(device):
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.chmod(path, 0o660)
                    _remove(path)
            except OSError as error:
                raise GateError(f"{path} cannot be restored: {error.strerror}") from error

    def _paths(self, device: str) -> Sequence[str]:
        try:
            return self._nodes[device]
        except KeyError:
            raise GateError(f"no node of {device} is known") from None

    def _observe(self, paths: Sequence[str]) -> GateState | None:
        """What all nodes of a device say together: open where any of them is."""
        try:
            states = [_state_of(path) for path in paths]
        except (OSError, ValueError):
            return None
        if not states:
            return None
        return GateState(
            uids=frozenset().union(*(state.uids for state in states)),
            group_open=any(state.group_open for state in states),
            sound=all(state.sound for state in states) and len(set(states)) == 1,
        )


def _own(path: str) -> None:
    """An owner may open the node and change its ACL: that is the agent's own uid, root."""
    if os.stat(path).st_uid != os.geteuid():
        os.chown(path, os.geteuid(), -1)


def _remove(path: str) -> None:
    try:
        os.removexattr(path, ATTRIBUTE)
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise


def _state_of(path: str) -> GateState:
    """Who may open one node, and whether it is as this gate would write it.

    Raises:
        OSError: It is missing, or its file system keeps no ACLs.
        ValueError: The ACL is in a form unknown here.
    """
    found = os.stat(path)
    try:
        entries = decode(os.getxattr(path, ATTRIBUTE))
    except OSError as error:
        if error.errno != errno.ENODATA:
            raise
        return GateState(group_open=bool(found.st_mode & 0o060), sound=False)
    uids = frozenset(
        uid for tag, permissions, uid in entries if tag == USER and permissions & READ_WRITE
    )
    group_open = any(
        tag == GROUP_OBJ and permissions & READ_WRITE for tag, permissions, _ in entries
    )
    return GateState(
        uids=uids,
        group_open=group_open,
        sound=entries == entries_for(uids, group_open=group_open) and found.st_uid == os.geteuid(),
    )
