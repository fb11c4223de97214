"""A pipe with a name, by which the command line has a running agent look at once.

What is written into it means nothing. Without it the agent looks a few seconds later.
"""

import contextlib
import logging
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

logger = logging.getLogger(__name__)

NAME = "wake"


class WakePipe:
    """The agent's end."""

    def __init__(self, folder: Path, *, on_wake: Callable[[], None]) -> None:
        self._path = folder / NAME
        self._on_wake = on_wake
        self._stopping = False
        self._descriptor: int | None = None
        self._thread = threading.Thread(target=self._run, name="wake", daemon=True)

    def start(self) -> None:
        try:
            with contextlib.suppress(FileExistsError):
                os.mkfifo(self._path, 0o600)
            if not stat.S_ISFIFO(self._path.lstat().st_mode):
                raise FileExistsError(f"{self._path} is no pipe")
            # Also for writing: so it opens at once, and never ends when a writer leaves.
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            logger.exception("%s cannot be used; the command line is heard a little later", NAME)
        else:
            self._thread.start()

    def stop(self) -> None:
        if self._descriptor is not None:
            self._stopping = True
            os.write(self._descriptor, b".")
            self._thread.join()
            os.close(self._descriptor)
            self._descriptor = None

    def _run(self) -> None:
        while self._descriptor is not None and not self._stopping:
            os.read(self._descriptor, 4096)
            self._on_wake()


def wake(folder: Path) -> None:
    """Has the agent of this folder look now, if one runs."""
    with contextlib.suppress(OSError):
        # Not blocking: without an agent nobody reads, and then there is nobody to wake.
        descriptor = os.open(folder / NAME, os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(descriptor, b".")
        finally:
            os.close(descriptor)
