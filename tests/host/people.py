"""Processes of people for tests as root: raw uids need no accounts."""

import contextlib
import os
import pickle
import select
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
LIMIT_S = 10


def as_person(uid: int, do: Callable[[], T], *, groups: tuple[int, ...] = ()) -> T:
    """What ``do`` returns in a child that is this person."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(uid, groups)
            os.write(writing, pickle.dumps(do()))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    assert answer, "the child died without an answer"
    result: T = pickle.loads(answer)
    return result


def let_everybody_into(folder: Path) -> None:
    """Temporary folders are closed to all but root."""
    for place in (folder, *folder.parents):
        if str(place).startswith("/tmp/"):
            place.chmod(0o755)


class Directory:
    """A name service that knows these people, who have no accounts on this machine."""

    def __init__(self, **uids: int) -> None:
        self._uids = uids

    def uid_of(self, unix_name: str) -> int | None:
        return self._uids.get(unix_name)

    def name_of(self, uid: int) -> str | None:
        return next((name for name, one in self._uids.items() if one == uid), None)


def become(uid: int, groups: tuple[int, ...] = ()) -> None:
    os.setgroups(list(groups))
    os.setgid(uid)
    os.setuid(uid)


class Child:
    """A process of a person, which has said ``ready`` when this returns."""

    def __init__(self, uid: int, do: Callable[[Callable[[], None]], None]) -> None:
        """``do`` gets a function to call when it is ready, and may then wait for ever."""
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(reading)
                os.setsid()
                become(uid)
                do(lambda: self._ready(writing))
            finally:
                os._exit(0)
        os.close(writing)
        ready = select.select([reading], [], [], LIMIT_S)[0]
        os.close(reading)
        assert ready, "the child is not ready"

    @staticmethod
    def _ready(writing: int) -> None:
        os.write(writing, b".")
        os.close(writing)

    def reap(self) -> int:
        """How it ended: the signal's number, or 0."""
        _, status = os.waitpid(self.pid, 0)
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def ended(self) -> bool:
        """Whether it has ended; it stays a zombie until it is reaped."""
        pidfd = os.pidfd_open(self.pid)
        try:
            return bool(select.select([pidfd], [], [], 0)[0])
        finally:
            os.close(pidfd)


def reusing(pid: int, uid: int, do: Callable[[Callable[[], None]], None]) -> Child:
    """A new process under that pid; others of the machine may be quicker a few times."""
    for _ in range(200):
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        made = Child(uid, do)
        if made.pid == pid:
            return made
        os.kill(made.pid, signal.SIGKILL)
        made.reap()
    raise AssertionError(f"pid {pid} was not to be had again")


def wait_for_ever() -> None:
    while True:
        signal.pause()


@contextlib.contextmanager
def child(uid: int, do: Callable[[Callable[[], None]], None]) -> Iterator[Child]:
    """A process of a person, killed with all that it forked when the block ends."""
    made = Child(uid, do)
    try:
        yield made
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(made.pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            made.reap()
