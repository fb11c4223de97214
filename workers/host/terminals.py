"""Writes to the terminals of a person. It never waits for one, and never reaches another person's.

Terminals are found by their owner: login records are missing in containers and under Jupyter. `mesg n`
does not hold it back: that keeps off what other people write, and this is about work that will be lost.
What a terminal cannot take at once is dropped.
"""

import contextlib
import logging
import os
import queue
import re
import stat
import termios
import textwrap
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from workers.host.plain_text import plain

logger = logging.getLogger(__name__)

WIDTH = 78
MAX_LINE = 400
# More terminals than this are panes that nobody looks at; those used last come first.
MAX_TERMINALS = 32
MAX_WAITING = 256
# Linux's Documentation/admin-guide/devices.txt: slaves of Unix98 pseudo terminals, and consoles.
_PTS_MAJORS = range(136, 144)
_CONSOLE_MAJOR = 4
_CONSOLE_MINORS = range(1, 64)
# asm-generic/termbits.h; absent from Python 3.11's termios.
_IUTF8 = 0o40000

Folders = Sequence[tuple[Path, str]]
FOLDERS: Folders = ((Path("/dev/pts"), r"\d+"), (Path("/dev"), r"tty\d+"))


class Terminals:
    """A thread that writes what it is given. `say` is for any thread and returns at once."""

    def __init__(self, folders: Folders = FOLDERS) -> None:
        self._folders = folders
        self._waiting: queue.Queue[tuple[int, Sequence[str]] | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="terminals", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, limit_s: float = 1.0) -> None:
        """Ends after what was said before."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
        if self._thread.is_alive():
            self._thread.join(limit_s)

    def say(self, uid: int, lines: Sequence[str]) -> None:
        """To every terminal of that person; root is nobody who is told anything."""
        if uid == 0:
            return
        try:
            self._waiting.put_nowait((uid, lines))
        except queue.Full:
            logger.warning("too much to say at once; uid=%s is not told", uid)

    def _run(self) -> None:
        while (said := self._waiting.get()) is not None:
            uid, lines = said
            try:
                reached = write(uid, lines, self._folders)
            except Exception:
                logger.exception("terminals of uid=%s could not be written", uid)
            else:
                logger.info("told uid=%s on %d terminal(s)", uid, reached)


def write(uid: int, lines: Sequence[str], folders: Folders = FOLDERS) -> int:
    """Writes the lines to the terminals of ``uid``; says how many took them whole."""
    text = "\r\n\a" + "".join(f"{line}\r\n" for line in _folded(lines))
    reached = 0
    for terminal in _terminals(uid, folders):
        with contextlib.closing(terminal):
            reached += terminal.take(text)
    return reached


def _folded(lines: Sequence[str]) -> Iterator[str]:
    """Short enough not to be cut by the terminal; an address stays in one piece, to be clicked."""
    for line in lines:
        yield from textwrap.wrap(
            plain(line, limit=MAX_LINE), WIDTH, break_long_words=False, break_on_hyphens=False
        )


class _Terminal:
    """An open terminal."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def take(self, text: str) -> bool:
        """Whether it took all of it: a full or stopped one does not, nor one that has gone."""
        try:
            flags = termios.tcgetattr(self._descriptor)[0]
            # Elsewhere bytes of UTF-8 may be control characters.
            encoded = text.encode("utf-8" if flags & _IUTF8 else "ascii", "replace")
            return os.write(self._descriptor, encoded) == len(encoded)
        except (OSError, termios.error):
            return False

    def close(self) -> None:
        os.close(self._descriptor)


def _terminals(uid: int, folders: Folders) -> Iterator[_Terminal]:
    found: list[tuple[float, Path]] = []
    for folder, pattern in folders:
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    if re.fullmatch(pattern, name) and _is_of(uid, seen := _look(folder / name)):
                        # Read from last, that is typed into.
                        found.append((seen.st_atime, folder / name))
    for _, path in sorted(found, reverse=True)[:MAX_TERMINALS]:
        if terminal := _open(path, uid):
            yield terminal


def _look(path: Path) -> os.stat_result:
    return os.stat(path, follow_symlinks=False)


def _is_of(uid: int, seen: os.stat_result) -> bool:
    if not stat.S_ISCHR(seen.st_mode) or seen.st_uid != uid:
        return False
    major, minor = os.major(seen.st_rdev), os.minor(seen.st_rdev)
    return major in _PTS_MAJORS or (major == _CONSOLE_MAJOR and minor in _CONSOLE_MINORS)


def _open(path: Path, uid: int) -> _Terminal | None:
    """Opened only once it is known what it is: to open some devices is to do something to them."""
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not _is_of(uid, os.fstat(place)):
            return None
        # The very file that was looked at, whatever its name leads to by now.
        flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        descriptor = os.open(f"/proc/self/fd/{place}", flags)
    except OSError:
        return None
    finally:
        os.close(place)
    # It may have been handed to somebody else in between.
    if not _is_of(uid, os.fstat(descriptor)) or not os.isatty(descriptor):
        os.close(descriptor)
        return None
    return _Terminal(descriptor)
