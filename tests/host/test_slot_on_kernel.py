"""One slot on the real kernel, as root: refused, opened, closed, cleared."""

import os
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.core.stage import ALICE, BOB, at, grant
from tests.host.people import child
from tests.host.slot import Bench, again, idle, job
from tests.waiting import until

pytestmark = pytest.mark.root


def test_a_slot_is_refused_before_opens_in_it_and_is_refused_and_cleared_after_it(
    bench: Bench,
) -> None:
    bench.tick(at(-60))
    assert not bench.opens_for(ALICE)

    assert bench.tick(at(0)) == ["opened"]
    assert bench.opens_for(ALICE)
    assert not bench.opens_for(BOB)

    with child(ALICE, job(bench.node)) as train, child(ALICE, idle) as shell:
        bench.listed = [train.pid]
        bench.tick(at(minutes=30))

        assert bench.tick(at(hours=1)) == ["closed", "overrun", "signalled"]
        assert train.reap() == signal.SIGTERM
        assert not shell.ended()
        assert not bench.opens_for(ALICE)
        bench.listed = []
        assert bench.tick(at(hours=1, seconds=1)) == ["gone"]


def test_a_job_that_ignores_sigterm_is_killed_and_the_next_person_let_in(bench: Bench) -> None:
    bench.grants.append(grant(BOB, at(hours=1)))
    bench.tick(at(-60))
    bench.tick(at(0))
    with child(ALICE, job(bench.node, ignores_sigterm=True)) as train:
        bench.listed = [train.pid]
        bench.tick(at(minutes=30))

        bench.tick(at(hours=1))
        assert not bench.opens_for(BOB)
        assert bench.tick(at(hours=1, seconds=9)) == []
        assert bench.tick(at(hours=1, seconds=10)) == ["killed"]
        assert train.reap() == signal.SIGKILL
        bench.listed = []
        assert bench.tick(at(hours=1, seconds=10.2)) == ["gone", "opened"]
        assert bench.opens_for(BOB)
        assert not bench.opens_for(ALICE)


def test_an_intruder_with_a_passed_descriptor_is_stopped_after_the_warning(bench: Bench) -> None:
    bench.tick(at(-60))
    bench.tick(at(0))
    with child(ALICE, job(bench.node)) as owner:
        os.chmod(bench.node, 0o666)
        with child(BOB, job(bench.node)) as intruder:
            bench.listed = [owner.pid, intruder.pid]

            assert bench.tick(at(10)) == ["drift", "intruder", "warned"]
            assert bench.tick(at(39)) == []
            assert bench.tick(at(40)) == ["signalled"]
            assert intruder.reap() == signal.SIGTERM
            assert not owner.ended()


@pytest.fixture
def frozen() -> Iterator[Path]:
    """A cgroup whose processes are in state D and ignore SIGKILL, as one stuck in a driver does."""
    folder = Path("/sys/fs/cgroup/freezer") / f"berth-test-{os.getpid()}"
    if not folder.parent.is_dir():
        pytest.skip("needs the cgroup v1 freezer")
    folder.mkdir()
    yield folder
    (folder / "freezer.state").write_text("THAWED")
    until(lambda: not (folder / "cgroup.procs").read_text())
    folder.rmdir()


def test_a_process_that_sigkill_does_not_end_is_called_stuck_and_holds_the_device_back(
    bench: Bench, frozen: Path
) -> None:
    bench.grants.append(grant(BOB, at(hours=1), booking=7))
    bench.tick(at(-60))
    bench.tick(at(0))
    with child(ALICE, job(bench.node)) as train:
        bench.listed = [train.pid]
        (frozen / "cgroup.procs").write_text(str(train.pid))
        (frozen / "freezer.state").write_text("FROZEN")
        until(lambda: (frozen / "freezer.state").read_text().strip() == "FROZEN")

        told = [kind for seconds in range(240) for kind in bench.tick(at(hours=1, seconds=seconds))]

        assert told == [
            "closed",
            "delayed",
            "overrun",
            "signalled",
            "killed",
            "stuck",
            "delayed",
        ]
        assert not train.ended()
        assert not bench.opens_for(BOB)

        (frozen / "freezer.state").write_text("THAWED")
        assert train.reap() == signal.SIGKILL
        bench.listed = []
        assert bench.tick(at(hours=1, minutes=5)) == ["gone", "opened"]


def test_a_monitor_that_has_every_device_open_is_left_alone(bench: Bench) -> None:
    bench.tick(at(0))
    with child(ALICE, job(bench.node)) as monitor:
        assert bench.tick(at(hours=1)) == ["closed"]
        for minutes in range(1, 10):
            assert bench.tick(at(hours=1, minutes=minutes)) == []
        assert not monitor.ended()


def test_a_restarted_agent_takes_no_access_away_and_goes_on_counting(bench: Bench) -> None:
    bench.tick(at(-60))
    bench.tick(at(0))
    with child(ALICE, job(bench.node, ignores_sigterm=True)) as train:
        bench.listed = [train.pid]
        ladder = bench.ladder
        bench = again(bench, ladder)
        assert bench.tick(at(minutes=5)) == []
        assert bench.opens_for(ALICE)

        assert bench.tick(at(hours=1)) == ["closed", "overrun", "signalled"]
        bench = again(bench, bench.ladder)
        assert bench.tick(at(hours=1) + timedelta(seconds=10)) == ["killed"]
        assert train.reap() == signal.SIGKILL
    bench.processes.close()


def test_a_job_that_asked_for_it_hears_sigusr1_once_and_is_stopped_at_its_end(bench: Bench) -> None:
    bench.grants = [grant(ALICE, early_signal=True)]
    bench.tick(at(-60))
    bench.tick(at(0))
    heard, writing = os.pipe()

    def saves(ready: Callable[[], None]) -> None:
        signal.signal(signal.SIGUSR1, lambda *_: os.write(writing, b"saved "))
        job(bench.node)(ready)

    with child(ALICE, saves) as train, child(ALICE, idle) as shell:
        os.close(writing)
        bench.listed = [train.pid]
        assert bench.tick(at(minutes=49, seconds=57)) == []

        assert bench.tick(at(minutes=50)) == ["early_signalled"]
        assert os.read(heard, 100) == b"saved "
        assert bench.tick(at(minutes=50)) == []
        bench = again(bench, bench.ladder)
        assert bench.tick(at(minutes=50)) == []

        assert bench.tick(at(hours=1)) == ["closed", "overrun", "signalled"]
        assert train.reap() == signal.SIGTERM
        assert not shell.ended()
    with os.fdopen(heard, "rb") as rest:
        assert rest.read() == b""
    bench.processes.close()
