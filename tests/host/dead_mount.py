"""A file system that never answers, as a network mount whose server has gone: FUSE that nobody serves."""

import contextlib
import ctypes
import os
from collections.abc import Iterator
from pathlib import Path

MNT_DETACH = 2
libc = ctypes.CDLL(None, use_errno=True)


class CannotMount(OSError):
    """This machine lets nobody mount here."""


@contextlib.contextmanager
def dead_mount(folder: Path) -> Iterator[Path]:
    """Whoever asks anything of this folder waits until the block ends."""
    folder.mkdir()
    try:
        server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise CannotMount(error.errno, "/dev/fuse cannot be opened") from error
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0,allow_other"
    if libc.mount(b"nobody", bytes(folder), b"fuse", 0, options.encode()) != 0:
        os.close(server)
        raise CannotMount(ctypes.get_errno(), "FUSE cannot be mounted")
    try:
        yield folder
    finally:
        libc.umount2(bytes(folder), MNT_DETACH)
        # Closing its end has the kernel send everybody away who waits.
        os.close(server)
