"""Has the kernel tell when a node is changed or made anew, so that a gate is put right within milliseconds.

The folders of the nodes are watched: they also tell of nodes that come, and go on when a node is replaced.
"""

import ctypes
import errno
import logging
import os
import select
import threading
import time
from collections.abc import Callable

from workers.host.gates.base import Gate

logger = logging.getLogger(__name__)

# include/uapi/linux/inotify.h
_ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x4, 0x40, 0x80, 0x100, 0x200
_ONLY_FOLDERS = 0x01000000
_CHANGES = _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _ONLY_FOLDERS
_BUFFER_BYTES = 65536
# Whoever changes a node without end gets ever fewer looks out of the agent, down to one a second.
FIRST_REST_S = 0.005
LAST_REST_S = 1.0

_libc = ctypes.CDLL(None, use_errno=True)


class NodeWatch:
    """Calls ``on_disturbed`` from a thread of its own when a gate's node is not as the gate last knew it.

    The gate's own changes are not told: the node then is as the gate set it.
    """

    def __init__(self, *, on_disturbed: Callable[[], None]) -> None:
        self._on_disturbed = on_disturbed
        self._gate: Gate | None = None
        self.problem = ""
        self._stopping = threading.Event()
        self._events = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._events < 0:
            self._note(ctypes.get_errno())
        self._ending = os.eventfd(0)
        self._thread = threading.Thread(target=self._run, name="nodes", daemon=True)

    def start(self) -> None:
        if self._events >= 0:
            self._thread.start()

    def follow(self, gate: Gate) -> None:
        """Watch the nodes of this gate from now on; asked at every look, since folders come late."""
        self._gate = gate
        if self._events >= 0:
            folders = {os.path.dirname(path) for path in gate.nodes}
            self._note(next(filter(None, map(self._watch, folders)), 0))

    def _watch(self, folder: str) -> int:
        """The error, if any. Again is harmless; a folder that is missing is asked for at the next look."""
        if _libc.inotify_add_watch(self._events, os.fsencode(folder), _CHANGES) >= 0:
            return 0
        code = ctypes.get_errno()
        return 0 if code == errno.ENOENT else code

    def _note(self, code: int) -> None:
        trouble = f"nodes are looked at every few seconds, not watched: {os.strerror(code)}"
        if code and trouble != self.problem:
            logger.error("%s", trouble)
        self.problem = trouble if code else ""

    def stop(self) -> None:
        if self._stopping.is_set():
            return
        self._stopping.set()
        os.eventfd_write(self._ending, 1)
        if self._thread.is_alive():
            self._thread.join()
        os.close(self._ending)
        if self._events >= 0:
            os.close(self._events)
            self._events = -1

    def _run(self) -> None:
        rest_s, told_at = FIRST_REST_S, 0.0
        while not self._stopping.is_set():
            select.select([self._events, self._ending], [], [])
            self._drain()
            if self._is_disturbed() and not self._stopping.is_set():
                self._on_disturbed()
                again = time.monotonic() - told_at < LAST_REST_S
                rest_s = min(2 * rest_s, LAST_REST_S) if again else FIRST_REST_S
                told_at = time.monotonic()
                self._stopping.wait(rest_s)

    def _drain(self) -> None:
        """What happened to whom does not matter: the nodes themselves are looked at."""
        try:
            os.read(self._events, _BUFFER_BYTES)
        except BlockingIOError:
            return

    def _is_disturbed(self) -> bool:
        gate = self._gate
        return gate is not None and gate.disturbed()
