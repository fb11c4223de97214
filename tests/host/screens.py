"""Terminals of people, for tests as root."""

import contextlib
import os
import pty
import select
import termios
import tty
from pathlib import Path

IUTF8 = 0o40000


class Screen:
    """The terminal of a person: a pseudo terminal whose other end is read here."""

    def __init__(self, uid, *, utf8=True):
        self.inner, self.outer = pty.openpty()
        self.path = Path(os.ttyname(self.outer))
        tty.setraw(self.outer)
        modes = termios.tcgetattr(self.outer)
        modes[0] = modes[0] | IUTF8 if utf8 else modes[0] & ~IUTF8
        termios.tcsetattr(self.outer, termios.TCSANOW, modes)
        os.chown(self.path, uid, 5)
        self.path.chmod(0o620)
        self.so_far = b""

    def shown(self):
        """All that has arrived by now."""
        while select.select([self.inner], [], [], 0)[0]:
            self.so_far += os.read(self.inner, 65536)
        return self.so_far

    def text(self):
        """The same in one line, as it was before it was folded."""
        return " ".join(self.shown().decode().replace("\a", "").split())

    def fill(self):
        """Until it takes no more, as with nobody reading."""
        writing = os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        # The kernel moves on what it took, and then takes a little more.
        while select.select([], [writing], [], 0.3)[1]:
            with contextlib.suppress(BlockingIOError):
                while True:
                    os.write(writing, b"x")
        os.close(writing)

    def close(self):
        for descriptor in (self.inner, self.outer):
            with contextlib.suppress(OSError):
                os.close(descriptor)
