"""POSIX access control lists in the kernel's own form.

`include/uapi/linux/posix_acl.h` and `posix_acl_xattr.h` say what the numbers mean.
"""

import struct
from collections.abc import Iterable

ATTRIBUTE = "system.posix_acl_access"
VERSION = 2
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
NO_ID = 0xFFFFFFFF
READ_WRITE = 6

Entry = tuple[int, int, int]
"""Tag, permissions, id."""


def encode(entries: Iterable[Entry]) -> bytes:
    """A version word, then tag, permissions and id of each entry."""
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
    """The whole list of a gate, in the order that the kernel asks for.

    The mask stays `rw`: it *is* the group bits of the mode, which so keeps reading 0660.
    """
    return (
        (USER_OBJ, READ_WRITE, NO_ID),
        *((USER, READ_WRITE, uid) for uid in sorted(set(uids) - {0})),
        (GROUP_OBJ, READ_WRITE if group_open else 0, NO_ID),
        (MASK, READ_WRITE, NO_ID),
        (OTHER, 0, NO_ID),
    )


def users(entries: Iterable[Entry]) -> frozenset[int]:
    """Everybody whom the list names and lets in."""
    return frozenset(uid for tag, allowed, uid in entries if tag == USER and allowed & READ_WRITE)


def admits_more(entries: Iterable[Entry]) -> bool:
    """Whether it lets in a group, or everybody."""
    return any(
        tag in {GROUP_OBJ, GROUP, OTHER} and allowed & READ_WRITE for tag, allowed, _ in entries
    )
