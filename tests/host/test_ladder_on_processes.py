"""The ladder with real processes, as root: a parent that saves while its workers hold the device, and units
that start their jobs again."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reservations.core.enforcement import Keeper
from tests.core.stage import ALICE, BOB, GPU, at, grant
from tests.host.people import Child, become, child, wait_for_ever
from tests.host.slot import Bench
from tests.waiting import until

pytestmark = pytest.mark.root
CONTAINER = "3f" * 32


def test_workers_hear_nothing_before_their_parent_has_saved(bench: Bench) -> None:
    """Only the topmost holder is signalled; its workers hold the device and stay until it ends them."""
    bench.tick(at(0))
    heard, writing = os.pipe()

    def train(ready: Callable[[], None]) -> None:
        workers = [_worker(bench.node, writing) for _ in range(3)]
        os.open(bench.node, os.O_RDWR)

        def save(*_: object) -> None:
            # A worker that had been signalled would have ended, and the batch with it.
            alive = sum(os.waitpid(pid, os.WNOHANG) == (0, 0) for pid in workers)
            os.write(writing, f"saved with {alive} workers ".encode())
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
            os._exit(0)

        signal.signal(signal.SIGTERM, save)
        ready()
        wait_for_ever()

    with child(ALICE, train) as parent:
        os.close(writing)
        bench.listed = [parent.pid]
        bench.tick(at(minutes=30))

        assert bench.tick(at(hours=1)) == ["closed", "overrun", "signalled"]
        assert parent.reap() == 0
    with os.fdopen(heard, "rb") as rest:
        assert rest.read() == b"saved with 3 workers "
    bench.listed = []
    assert bench.tick(at(hours=1, seconds=1)) == ["gone"]


def test_workers_that_their_parent_left_behind_are_stopped_in_their_turn(bench: Bench) -> None:
    bench.tick(at(0))
    pids, writing = os.pipe()

    def train(ready: Callable[[], None]) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.write(writing, str(_worker(bench.node, writing)).encode())
        os.open(bench.node, os.O_RDWR)
        ready()
        wait_for_ever()

    with child(ALICE, train) as parent:
        worker = int(os.read(pids, 20))
        bench.listed = [parent.pid]
        bench.tick(at(minutes=30))
        bench.tick(at(hours=1))
        assert parent.reap() == signal.SIGTERM

        bench.listed = []
        # No list names it, but it was in use when its parent was signalled.
        assert bench.tick(at(hours=1, seconds=1)) == []
        assert os.read(pids, 20) == b"TERM "
        until(lambda: not bench.holds(worker))
        assert bench.tick(at(hours=1, seconds=2)) == ["gone"]
    os.close(pids)
    os.close(writing)


def _worker(node: str, writing: int) -> int:
    """A data-loader worker: it holds the device, and says so when it is told to end."""
    begun, beginning = os.pipe()
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGTERM, lambda *_: (os.write(writing, b"TERM "), os._exit(0)))
        os.open(node, os.O_RDWR)
        os.write(beginning, b".")
        wait_for_ever()
    # Later the gate may have closed before it opens the device.
    os.read(begun, 1)
    os.close(begun)
    os.close(beginning)
    return pid


class Restarter:
    """A unit that starts its job again whenever that ends, until its manager is asked to stop it.

    The manager's program on PATH writes down what it was asked, and does it unless it is broken.
    """

    def __init__(self, folder: Path, node: str, *, broken: bool = False) -> None:
        folder.mkdir()
        self.programs = folder / "bin"
        self._job = folder / "job"
        self._asked = folder / "asked"
        self._stopped = folder / "stopped"
        self._install(broken)
        self._runner = Child(0, lambda ready: self._run(node, ready))

    def _install(self, broken: bool) -> None:
        does = f'touch "{self._stopped}"; kill -TERM "$(cat "{self._job}")"'
        fails = "echo the engine is broken >&2; exit 3"
        self.programs.mkdir()
        for name in ("docker", "podman", "systemctl"):
            program = self.programs / name
            asked = f'echo "{name} $*" >> "{self._asked}"'
            program.write_text(f"#!/bin/sh\n{asked}\n{fails if broken else does}\n")
            program.chmod(0o755)

    def _run(self, node: str, ready: Callable[[], None]) -> None:
        # Handed on to each job past the closed gate, as a runtime's descriptors may be.
        os.open(node, os.O_RDWR)
        while not self._stopped.exists():
            begun, writing = os.pipe()
            pid = os.fork()
            if pid == 0:
                become(ALICE)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.write(writing, b".")
                wait_for_ever()
            # Not known to anybody before it is Alice's.
            os.read(begun, 1)
            os.close(begun)
            os.close(writing)
            self._write_down(pid)
            ready()
            ready = _nothing
            os.waitpid(pid, 0)

    def _write_down(self, pid: int) -> None:
        new = self._job.with_suffix(".new")
        new.write_text(str(pid))
        new.rename(self._job)

    @property
    def pid(self) -> int:
        """Of the job that runs now."""
        return int(self._job.read_text())

    @property
    def asked(self) -> list[str]:
        """The commands that its manager was given."""
        return self._asked.read_text().splitlines() if self._asked.exists() else []

    def ended(self) -> bool:
        return self._runner.ended()

    def close(self) -> None:
        self._stopped.touch()
        if not self.ended():
            os.kill(self.pid, signal.SIGKILL)
        self._runner.reap()


def _nothing() -> None:
    pass


@contextlib.contextmanager
def restarter(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, broken: bool = False
) -> Iterator[Restarter]:
    made = Restarter(Path(bench.node).parent / "unit", bench.node, broken=broken)
    monkeypatch.setenv("PATH", str(made.programs), prepend=os.pathsep)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize(
    ("keeper", "command"),
    [
        (Keeper(engine="docker", name=CONTAINER), f"docker stop --time 10 -- {CONTAINER}"),
        (Keeper(engine="podman", name=CONTAINER), f"podman stop --time 10 -- {CONTAINER}"),
        (Keeper(engine="systemd", name="train.service"), "systemctl stop -- train.service"),
        (
            Keeper(engine="systemd", name="train.service", owner=ALICE),
            f"systemctl --user --machine={ALICE}@.host stop -- train.service",
        ),
    ],
)
def test_a_unit_that_starts_its_job_again_is_ended_through_its_manager(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, keeper: Keeper, command: str
) -> None:
    bench.tick(at(0))
    bench.keeper = keeper
    with restarter(bench, monkeypatch) as unit:
        bench.listed = [unit.pid]
        bench.tick(at(minutes=30))

        assert bench.tick(at(hours=1)) == ["closed", "overrun", "signalled"]
        until(unit.ended)

        assert unit.asked == [command]
        bench.listed = []
        assert bench.tick(at(hours=1, seconds=1)) == ["gone"]


def test_a_unit_whose_manager_fails_is_killed_again_and_again_and_then_called_stuck(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next person is kept waiting and told why, and so is the administrator."""
    bench.grants.append(grant(BOB, at(hours=1), booking=7))
    bench.tick(at(0))
    bench.keeper = Keeper(engine="docker", name=CONTAINER)
    with restarter(bench, monkeypatch, broken=True) as unit:
        told: list[str] = []
        for step in range(13):
            job, passes = unit.pid, bench.passes
            bench.listed = [job]
            told += bench.tick(at(hours=1, seconds=2 * step))
            if bench.passes > passes:
                until(lambda job=job: unit.pid != job)

        assert not bench.opens_for(BOB)
        (problem,) = bench.hands.problems()
        assert (problem.code, problem.device) == ("unit_not_stopped", GPU)
        assert "the engine is broken" in problem.text
        stuck = next(one for one in bench.reports if one.kind == "stuck")
        assert stuck.text == f"it is started again and again: {CONTAINER}"
        assert [one.booking for one in bench.reports if one.kind == "delayed"] == [7, 7]
    assert told == ["closed", "delayed", "overrun", "signalled", "killed", "stuck", "delayed"]
    bench.problems.clear()
