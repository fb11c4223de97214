"""`statx`, which can be told not to ask a file system's server: a plain stat hangs on a dead network mount."""

import ctypes
import os
import stat

# include/uapi/linux/stat.h, include/uapi/linux/fcntl.h
_AT_FDCWD = -100
_AT_STATX_DONT_SYNC = 0x4000
_STATX_TYPE = 0x1
_STATX_BTIME = 0x800


class _Statx(ctypes.Structure):
    """struct statx, named as far as it is read here."""

    _fields_ = (
        ("mask", ctypes.c_uint32),
        ("blksize", ctypes.c_uint32),
        ("attributes", ctypes.c_uint64),
        ("nlink_uid_gid", ctypes.c_uint32 * 3),
        ("mode", ctypes.c_uint16),
        ("spare", ctypes.c_uint16),
        ("ino_size_blocks_mask", ctypes.c_uint64 * 4),
        ("accessed", ctypes.c_uint64 * 2),
        ("born_s", ctypes.c_int64),
        ("born_ns", ctypes.c_uint32),
        ("born_spare", ctypes.c_uint32),
        ("changed_and_modified", ctypes.c_uint64 * 4),
        ("rdev_major", ctypes.c_uint32),
        ("rdev_minor", ctypes.c_uint32),
        ("rest", ctypes.c_uint64 * 16),
    )


_libc = ctypes.CDLL(None, use_errno=True)


def device_number(path: str) -> int | None:
    """st_rdev of a character device, following links; None for any other file.

    Raises:
        OSError: It cannot be looked at.
    """
    found = _statx(path, _STATX_TYPE)
    if not stat.S_ISCHR(found.mode):
        return None
    return os.makedev(found.rdev_major, found.rdev_minor)


def born_ns(path: str) -> int:
    """When this file was made, in nanoseconds; 0 where its file system does not remember.

    Raises:
        OSError: It cannot be looked at.
    """
    found = _statx(path, _STATX_BTIME)
    return int(found.born_s) * 1_000_000_000 + int(found.born_ns)


def _statx(path: str, mask: int) -> _Statx:
    found = _Statx()
    result = _libc.statx(
        _AT_FDCWD, os.fsencode(path), _AT_STATX_DONT_SYNC, mask, ctypes.byref(found)
    )
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    return found
