"""Holders that hide, on purpose or not: passed descriptors, threads, sessions left, shells."""

import array
import ctypes
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.host.people import child, wait_for_ever
from tests.host.scanning import ALICE, BOB, found, holding, look, sample
from tests.waiting import until
from workers.host.holders import HolderScan
from workers.host.processes import Processes

CLONE_FILES = 0x400
pytestmark = pytest.mark.root


def test_a_descriptor_passed_to_somebody_else_makes_them_the_holder(
    scan: HolderScan, node: str
) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    descriptor = os.open(node, os.O_RDWR)

    def receive(ready: Callable[[], None]) -> None:
        theirs.recvmsg(1, socket.CMSG_SPACE(4))
        ready()
        wait_for_ever()

    rights = array.array("i", [descriptor])
    ours.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    os.close(descriptor)
    with child(BOB, receive) as one:
        assert found(look(scan, node, sample(one.pid))) == {one.pid: True}
    ours.close()
    theirs.close()


def test_threads_that_outlive_the_main_thread_are_found(scan: HolderScan, node: str) -> None:
    def leave_a_thread_behind(ready: Callable[[], None]) -> None:
        os.open(node, os.O_RDWR)
        threading.Thread(target=lambda: (ready(), threading.Event().wait())).start()
        ctypes.CDLL(None).syscall(60, 0)

    with child(ALICE, leave_a_thread_behind) as one:
        until(lambda: " Z " in Path(f"/proc/{one.pid}/stat").read_text())

        assert found(look(scan, node, sample(one.pid))) == {one.pid: True}


def test_a_thread_with_a_descriptor_table_of_its_own_is_found_once_it_is_listed(
    scan: HolderScan, node: str
) -> None:
    """It would otherwise make its own list look like garbage."""

    def unshare_and_open(ready: Callable[[], None]) -> None:
        threading.Thread(target=hold_alone, args=(node, ready)).start()
        wait_for_ever()

    with child(ALICE, unshare_and_open) as one:
        assert found(look(scan, node, sample(one.pid))) == {one.pid: True}


def hold_alone(node: str, ready: Callable[[], None]) -> None:
    assert ctypes.CDLL(None).unshare(CLONE_FILES) == 0
    os.open(node, os.O_RDWR)
    ready()
    threading.Event().wait()


def test_a_process_that_left_its_session_is_found(scan: HolderScan, node: str) -> None:
    reading, writing = os.pipe()

    def leave(ready: Callable[[], None]) -> None:
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.open(node, os.O_RDWR)
                os.write(writing, str(os.getpid()).encode())
                wait_for_ever()
            os._exit(0)
        os.wait()
        ready()

    with child(ALICE, leave):
        pid = int(os.read(reading, 10))
        holders = look(scan, node, sample(pid)) or ()
        os.kill(pid, signal.SIGKILL)

        assert [(one.pid, one.uid, one.uses, one.protected) for one in holders] == [
            (pid, ALICE, True, None)
        ]


def test_a_stopped_process_is_a_holder_like_any_other(scan: HolderScan, node: str) -> None:
    with child(ALICE, holding(node)) as one:
        os.kill(one.pid, signal.SIGSTOP)
        until(lambda: ") T " in Path(f"/proc/{one.pid}/stat").read_text())

        assert found(look(scan, node, sample(one.pid))) == {one.pid: True}


def test_a_shell_that_was_left_with_the_device_open_is_a_holder(
    scan: HolderScan, processes: Processes, node: str
) -> None:
    """Whatever it is called, and whether or not somebody sits in front of it."""

    def shell(ready: Callable[[], None]) -> None:
        ready()
        os.execl("/bin/sh", "-sh", "-c", f"exec 3<>{node}; read _ < {node}.fifo")

    os.mkfifo(f"{node}.fifo", 0o666)
    os.chmod(f"{node}.fifo", 0o666)
    with child(ALICE, shell) as one:
        until(lambda: look(scan, node, None, may_open=None, lists_processes=False))
        (holder,) = look(scan, node, sample(one.pid)) or ()

        assert (holder.pid, holder.uses, holder.protected) == (one.pid, True, None)
        assert processes.kill([one.pid]) == (one.pid,)
