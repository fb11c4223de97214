"""Facts and signals, with real processes: none may reach anybody but the one that was looked at."""

import ctypes
import os
import select
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.host.fake_proc import FakeProc, undying
from tests.host.people import Child, child, reusing, wait_for_ever
from tests.waiting import until
from workers.host.processes import (
    INIT_PID_NAMESPACE_INODE,
    Facts,
    Processes,
    ancestors,
    read_facts,
    sees_the_host,
)
from workers.host.protection import person_of

ALICE = 61001
SUBORDINATE = 165_536
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
PR_SET_DUMPABLE = 4
_libc = ctypes.CDLL(None, use_errno=True)
pytestmark = pytest.mark.root


def obedient(ready: Callable[[], None]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    ready()
    wait_for_ever()


def stubborn(ready: Callable[[], None]) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ready()
    wait_for_ever()


def test_the_facts_are_those_of_the_process(processes: Processes) -> None:
    with child(ALICE, obedient) as one:
        facts = processes.look(one.pid)

        assert facts is not None
        assert (facts.pid, facts.ppid) == (one.pid, os.getpid())
        assert (facts.uid, facts.euid) == (ALICE, ALICE)
        assert facts.start_ticks > 0
        assert not facts.kernel_thread
        assert facts.cgroups


def test_terminate_ends_one_that_obeys_and_kill_one_that_does_not(processes: Processes) -> None:
    with child(ALICE, obedient) as polite, child(ALICE, stubborn) as rude:
        assert processes.look(polite.pid)
        assert processes.look(rude.pid)

        assert processes.terminate([polite.pid, rude.pid]) == (polite.pid, rude.pid)
        assert polite.reap() == signal.SIGTERM
        assert not rude.ended()

        assert processes.kill([rude.pid]) == (rude.pid,)
        assert rude.reap() == signal.SIGKILL


def test_an_early_signal_is_sigusr1(processes: Processes) -> None:
    with child(ALICE, obedient) as one:
        assert processes.signal_early([one.pid]) == ()
        processes.look(one.pid)

        assert processes.signal_early([one.pid]) == (one.pid,)
        assert one.reap() == signal.SIGUSR1


def test_a_stopped_process_hears_sigterm(processes: Processes) -> None:
    with child(ALICE, obedient) as one:
        os.kill(one.pid, signal.SIGSTOP)
        processes.look(one.pid)

        processes.terminate([one.pid])

        assert one.reap() == signal.SIGTERM


def test_nobody_is_signalled_who_was_not_looked_at(processes: Processes) -> None:
    with child(ALICE, obedient) as one:
        assert processes.kill([one.pid, 0, -1, 1]) == ()
        assert not one.ended()


def test_no_pid_of_a_broken_list_is_looked_at(processes: Processes) -> None:
    for pid in (0, 1, -1, -os.getpid(), 2**31 - 1, 2**32 - 1, 314_572_800, 2**70):
        assert processes.look(pid) is None


def test_one_that_ended_since_the_look_is_skipped(processes: Processes) -> None:
    with child(ALICE, obedient) as one:
        processes.look(one.pid)
        os.kill(one.pid, signal.SIGKILL)
        one.reap()

        assert processes.terminate([one.pid]) == ()
        assert processes.look(one.pid) is None


def test_a_pid_given_to_another_process_is_not_signalled_for_the_first(
    processes: Processes,
) -> None:
    first = Child(ALICE, obedient)
    processes.look(first.pid)
    os.kill(first.pid, signal.SIGKILL)
    first.reap()
    second = reusing(first.pid, ALICE, obedient)
    try:
        assert processes.kill([first.pid]) == ()
        assert not second.ended()

        assert processes.look(second.pid)
        assert processes.kill([second.pid]) == (second.pid,)
    finally:
        os.kill(second.pid, signal.SIGKILL)
        second.reap()


def test_a_zombie_is_dead(processes: Processes) -> None:
    with child(ALICE, lambda ready: ready()) as one:
        until(one.ended)

        assert read_facts(one.pid) is None
        assert processes.look(one.pid) is None


def test_one_whose_main_thread_has_ended_is_alive_and_can_be_killed(processes: Processes) -> None:
    def leave_a_thread_behind(ready: Callable[[], None]) -> None:
        threading.Thread(target=lambda: (ready(), wait_for_silence())).start()
        # Ends this thread alone, as pthread_exit in main does.
        ctypes.CDLL(None).syscall(60, 0)

    with child(ALICE, leave_a_thread_behind) as one:
        until(lambda: " Z " in Path(f"/proc/{one.pid}/stat").read_text())

        assert processes.look(one.pid)
        assert processes.kill([one.pid]) == (one.pid,)
        assert one.reap() == signal.SIGKILL


def wait_for_silence() -> None:
    select.select([os.pipe()[0]], [], [])


def test_letting_go_closes_the_descriptors(processes: Processes) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with child(ALICE, obedient) as one, child(ALICE, obedient) as other:
        for pid in (one.pid, other.pid, one.pid):
            processes.look(pid)
        assert len(os.listdir("/proc/self/fd")) == before + 2

        processes.keep_only([other.pid])

        assert processes.kill([one.pid]) == ()
        processes.close()
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("comm", ["a) b", "a) R 7 7", ") ", "((((", "x y z"])
def test_a_name_with_brackets_and_blanks_shifts_nothing(tmp_path: Path, comm: str) -> None:
    proc = FakeProc(tmp_path)
    proc.add(700, comm=comm, ppid=600, start_ticks=4242)

    facts = read_facts(700, tmp_path)

    assert facts is not None
    assert (facts.ppid, facts.start_ticks) == (600, 4242)


def test_a_kernel_thread_is_known_by_its_flag(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.add(700, flags=0x208040)
    proc.add(701)

    assert [bool(f and f.kernel_thread) for f in (read_facts(p, tmp_path) for p in (700, 701))] == [
        True,
        False,
    ]


def test_ancestors_lead_up_to_the_first_process_and_end_where_one_is_missing(
    tmp_path: Path,
) -> None:
    proc = FakeProc(tmp_path)
    proc.add(1, ppid=0)
    proc.add(600, ppid=1)
    proc.add(700, ppid=600)
    proc.add(800, ppid=799)

    assert ancestors(700, tmp_path) == (600, 1)
    assert ancestors(800, tmp_path) == (799,)


def test_facts_of_a_process_that_ended_while_they_were_read_count_for_nothing(
    tmp_path: Path,
) -> None:
    proc = FakeProc(tmp_path)
    proc.add(700)
    ended, writing = os.pipe()
    os.close(writing)  # readable at once, as the pidfd of a process that has ended

    made = Processes(tmp_path, open_pidfd=lambda pid: ended)
    assert made.look(700) is None
    assert Processes(tmp_path, open_pidfd=undying).look(700)


def in_a_user_namespace(ready: Callable[[], None]) -> None:
    """Becomes uid 1 of it when it hears SIGUSR1."""
    signal.signal(signal.SIGUSR1, lambda *_: os.setuid(1))
    assert _libc.unshare(CLONE_NEWUSER) == 0
    ready()
    wait_for_ever()


def in_one_within_another(ready: Callable[[], None]) -> None:
    assert _libc.unshare(CLONE_NEWUSER) == 0
    assert _libc.prctl(PR_SET_DUMPABLE, 1) == 0
    Path("/proc/self/setgroups").write_text("deny")
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/self/{name}").write_text(f"0 {ALICE} 1")
    in_a_user_namespace(ready)


@pytest.mark.parametrize("body", [in_a_user_namespace, in_one_within_another])
def test_who_made_the_outermost_user_namespace_is_known(
    processes: Processes, body: Callable[[Callable[[], None]], None]
) -> None:
    with child(ALICE, body) as one:
        facts = processes.look(one.pid)

        assert facts is not None
        assert (facts.uid, facts.namespace_owner) == (ALICE, ALICE)


def test_the_machines_own_user_namespace_has_no_owner(processes: Processes) -> None:
    with child(ALICE, obedient) as one:
        facts = processes.look(one.pid)

        assert facts is not None
        assert facts.namespace_owner is None


def test_a_process_under_a_subordinate_uid_is_its_persons(processes: Processes) -> None:
    """As in a rootless container; root writes the map here, as newuidmap does there."""
    with child(ALICE, in_a_user_namespace) as one:
        Path(f"/proc/{one.pid}/uid_map").write_text(f"0 {ALICE} 1\n1 {SUBORDINATE} 65536\n")
        os.kill(one.pid, signal.SIGUSR1)
        facts = until(lambda: became(SUBORDINATE, processes.look(one.pid)))

        assert facts.namespace_owner == ALICE
        assert person_of(facts) == ALICE


def became(uid: int, facts: Facts | None) -> Facts | None:
    return facts if facts is not None and facts.uid == uid else None


def test_an_agent_in_a_pid_namespace_of_its_own_knows_it(tmp_path: Path) -> None:
    """Pids from the driver mean other processes there."""
    assert sees_the_host() == (os.stat("/proc/self/ns/pid").st_ino == INIT_PID_NAMESPACE_INODE)
    assert not sees_the_host(tmp_path)

    def answer_from_inside() -> bool:
        reading, writing = os.pipe()
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWPID):
            return False
        if os.fork() == 0:
            os.write(writing, str(int(sees_the_host())).encode())
            os._exit(0)
        return os.read(reading, 1) == b"1"

    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, str(int(answer_from_inside())).encode())
        os._exit(0)
    assert os.read(reading, 1) == b"0"
    os.wait()
