"""The supervisor starts, watches, restarts and stops real processes."""

import os
import signal
import sys

import pytest

from tests.waiting import until
from webapp.supervise import Part, PartFailed, Supervisor

WAITS = [sys.executable, "-c", "import time; time.sleep(60)"]
IGNORES_TERM = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


@pytest.fixture
def said():
    return []


@pytest.fixture
def supervisor(tmp_path, said):
    made = Supervisor(run_dir=tmp_path / "run", log_dir=tmp_path / "log", say=said.append)
    yield made
    made.stop()


def test_a_part_that_ends_while_starting_is_told_with_its_last_lines(supervisor):
    part = Part("web", [sys.executable, "-c", "print('no database here'); raise SystemExit(3)"])
    supervisor.start(part)
    part.process.wait(10)
    with pytest.raises(PartFailed, match=r"web ended with status 3(.|\n)*no database here"):
        supervisor.require_alive()


def test_a_part_that_dies_later_is_started_again_and_said_so(supervisor, said):
    part = Part("beat", WAITS)
    supervisor.start(part)
    first = part.process.pid
    os.kill(first, signal.SIGKILL)
    part.process.wait(10)
    supervisor.restart_dead()
    assert part.process.pid == first, "one that dies at once is left a moment first"
    part.started -= 60
    supervisor.restart_dead()
    assert part.process.pid != first
    assert said == ["beat ended with status -9; starting it again"]


def test_a_part_that_cannot_be_started_again_is_tried_later_and_stops_nothing(supervisor, tmp_path):
    part, other = Part("beat", WAITS), Part("web", WAITS)
    for one in (part, other):
        supervisor.start(one)
    first = part.process.pid
    os.kill(first, signal.SIGKILL)
    part.process.wait(10)
    (tmp_path / "log").rename(tmp_path / "away")
    part.started -= 60
    supervisor.restart_dead()
    assert (part.process.pid, other.process.poll()) == (first, None)
    (tmp_path / "away").rename(tmp_path / "log")
    part.started -= 60
    supervisor.restart_dead()
    assert part.process.pid != first
    assert part.process.poll() is None


def test_the_pid_stands_in_a_file_while_the_part_lives(supervisor, tmp_path):
    part = Part("redis", WAITS)
    supervisor.start(part)
    assert int((tmp_path / "run" / "redis.pid").read_text()) == part.process.pid
    supervisor.stop()
    assert part.process.poll() is not None
    assert not (tmp_path / "run" / "redis.pid").exists()


def test_a_part_that_ignores_the_request_to_end_is_killed(supervisor, tmp_path, monkeypatch):
    monkeypatch.setattr("webapp.supervise._STOP_LIMIT_S", 0.3)
    part = Part("stubborn", IGNORES_TERM)
    supervisor.start(part)
    until(lambda: "up" in (tmp_path / "log" / "stubborn.log").read_text())
    supervisor.stop()
    assert part.process.wait(5) == -signal.SIGKILL
