"""Processes of this machine: facts from /proc, and signals that cannot reach the wrong one.

A pid names another process as soon as its own has ended, and so may pid and start time together
(the start counts in 10 ms ticks). So the pidfd is opened first, then the facts are read, then the
pidfd is found still alive, and signals go through that pidfd only.
"""

import contextlib
import fcntl
import os
import select
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from sys import byteorder

from workers.host.room import check_room, kept_at_most

PROC = Path("/proc")
# include/linux/proc_ns.h: the inode of the machine's first pid namespace is fixed.
INIT_PID_NAMESPACE_INODE = 0xEFFFFFFC
INIT_USER_NAMESPACE_INODE = 0xEFFFFFFD
# include/uapi/linux/nsfs.h
_NS_GET_PARENT = 0xB702
_NS_GET_OWNER_UID = 0xB704
# include/linux/sched.h
PF_KTHREAD = 0x00200000


@dataclass(frozen=True, slots=True)
class Facts:
    """What /proc says about a process. ``start_ticks`` count from boot; ``cgroups`` are its paths.

    ``namespace_owner`` is the uid that made its user namespace, in which uids are others than
    outside; None while it lives in the machine's own.
    """

    pid: int
    ppid: int
    uid: int
    euid: int
    start_ticks: int
    kernel_thread: bool
    cgroups: tuple[str, ...] = ()
    namespace_owner: int | None = None


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    ppid: int
    flags: int
    threads: int
    start_ticks: int

    @property
    def dead(self) -> bool:
        """A zombie whose other threads go on is alive, and may hold devices."""
        return self.state == "X" or (self.state == "Z" and self.threads <= 1)


def sees_the_host(proc: Path = PROC) -> bool:
    """Whether pids mean here what they mean to the driver: nobody may be stopped otherwise."""
    try:
        return (proc / "self/ns/pid").stat().st_ino == INIT_PID_NAMESPACE_INODE
    except OSError:
        return False


def read_facts(pid: int, proc: Path = PROC) -> Facts | None:
    """None when there is no such process, or it has ended and waits for its parent."""
    try:
        stat = _read_stat(pid, proc)
        if stat.dead:
            return None
        uid, euid = _read_uids(pid, proc)
        cgroups = _read(f"{proc}/{pid}/cgroup").decode(errors="replace")
    except (OSError, ValueError, IndexError):
        return None
    return Facts(
        pid=pid,
        ppid=stat.ppid,
        uid=uid,
        euid=euid,
        start_ticks=stat.start_ticks,
        kernel_thread=bool(stat.flags & PF_KTHREAD),
        cgroups=tuple(line.split(":", 2)[2] for line in cgroups.splitlines() if ":" in line),
        namespace_owner=_namespace_owner(pid, proc),
    )


def ancestors(pid: int, proc: Path = PROC) -> tuple[int, ...]:
    """The pids above a process, its parent first. Shorter when one ends meanwhile."""
    above: list[int] = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        while (pid := _read_stat(pid, proc).ppid) > 0 and pid not in above:
            above.append(pid)
    return tuple(above)


def _read_stat(pid: int, proc: Path) -> _Stat:
    content = _read(f"{proc}/{pid}/stat")
    # The name in parentheses may hold blanks and parentheses itself: count from the last one.
    fields = content[content.rindex(b")") + 2 :].split()
    return _Stat(
        state=fields[0].decode(),
        ppid=int(fields[1]),
        flags=int(fields[6]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
    )


def _read_uids(pid: int, proc: Path) -> tuple[int, int]:
    for line in _read(f"{proc}/{pid}/status").splitlines():
        if line.startswith(b"Uid:"):
            real, effective = line.split()[1:3]
            return int(real), int(effective)
    raise ValueError(f"no Uid line for {pid}")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError as error:
        check_room(error)
        raise


def _namespace_owner(pid: int, proc: Path) -> int | None:
    """Of namespaces within each other the outermost counts: only that was made by a uid of here."""
    try:
        namespace = os.open(f"{proc}/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        check_room(error)
        return None
    try:
        if os.fstat(namespace).st_ino == INIT_USER_NAMESPACE_INODE:
            return None
        while True:
            parent = fcntl.ioctl(namespace, _NS_GET_PARENT)
            if os.fstat(parent).st_ino == INIT_USER_NAMESPACE_INODE:
                os.close(parent)
                return int.from_bytes(
                    fcntl.ioctl(namespace, _NS_GET_OWNER_UID, bytes(4)), byteorder
                )
            os.close(namespace)
            namespace = parent
    except OSError as error:
        check_room(error)
        return None
    finally:
        os.close(namespace)


class Processes:
    """Processes that were looked at, each held by its pidfd until it is let go of.

    For one thread. ``proc`` and ``open_pidfd`` are arguments for tests with a made-up /proc.
    """

    def __init__(self, proc: Path = PROC, open_pidfd: Callable[[int], int] = os.pidfd_open) -> None:
        self.proc = proc
        self._open_pidfd = open_pidfd
        self._pidfds: dict[int, int] = {}
        self._swept = False

    def look(self, pid: int) -> Facts | None:
        """The facts of a process that is alive, which from now on can be signalled; else None.

        Of a crowd too large to hold all of it the rest is seen, and can be signalled once there is room.
        """
        if pid <= 1:
            return None
        pidfd = self._pidfd(pid)
        if pidfd is None:
            return None if self._has_room() else read_facts(pid, self.proc)
        facts = read_facts(pid, self.proc)
        if facts is None or _has_ended(pidfd):
            self._let_go(pid)
            return None
        return facts

    def signal_early(self, pids: Iterable[int]) -> tuple[int, ...]:
        """SIGUSR1, which a job has asked for some time before its end. Returns whom it reached."""
        return tuple(pid for pid in pids if self._send(pid, signal.SIGUSR1))

    def terminate(self, pids: Iterable[int]) -> tuple[int, ...]:
        """SIGTERM, and SIGCONT so that a stopped process hears it. Returns whom it reached."""
        return tuple(pid for pid in pids if self._send(pid, signal.SIGTERM, signal.SIGCONT))

    def kill(self, pids: Iterable[int]) -> tuple[int, ...]:
        """SIGKILL. Returns whom it reached."""
        return tuple(pid for pid in pids if self._send(pid, signal.SIGKILL))

    def keep_only(self, pids: Iterable[int]) -> None:
        """Let go of every process but these."""
        self._swept = False
        for pid in self._pidfds.keys() - set(pids):
            self._let_go(pid)

    def close(self) -> None:
        self.keep_only(())

    def _pidfd(self, pid: int) -> int | None:
        kept = self._pidfds.get(pid)
        if kept is not None and not _has_ended(kept):
            return kept
        self._let_go(pid)
        if not self._has_room():
            return None
        try:
            self._pidfds[pid] = self._open_pidfd(pid)
        except OverflowError:
            return None
        except OSError as error:
            check_room(error)
            return None
        return self._pidfds[pid]

    def _has_room(self) -> bool:
        """Once in each look those that have ended make room."""
        most = kept_at_most()
        if len(self._pidfds) >= most and not self._swept:
            self._swept = True
            for pid in [pid for pid, pidfd in self._pidfds.items() if _has_ended(pidfd)]:
                self._let_go(pid)
        return len(self._pidfds) < most

    def _send(self, pid: int, *signals: signal.Signals) -> bool:
        pidfd = self._pidfds.get(pid)
        if pidfd is None:
            return False
        try:
            for one in signals:
                signal.pidfd_send_signal(pidfd, one)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _let_go(self, pid: int) -> None:
        pidfd = self._pidfds.pop(pid, None)
        if pidfd is not None:
            os.close(pidfd)


def _has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
