"""The whole agent on a disk that is full: slots go on, and somebody is told."""

import contextlib
import errno
import json
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reservations.core.wire import HostSettings
from tests.host import nodes
from tests.host.control_plane import TOKEN, ControlPlaneDouble, grant
from tests.host.people import Directory, as_person, child, let_everybody_into, wait_for_ever
from tests.waiting import until
from workers.host.agent import Agent
from workers.host.clock import HostClock
from workers.host.config import Config

pytestmark = pytest.mark.root
ALICE, BOB = 61001, 61002


class Systemd:
    """Counts the looks that the agent calls good."""

    def __init__(self) -> None:
        self.heard = 0

    def alive(self, status: str) -> None:
        self.heard += 1

    def stopping(self) -> None:
        pass


def open_vendor(config: Config, clock: HostClock) -> nodes.NodeVendor:
    """The node lies beside the state folder, on another disk."""
    return nodes.NodeVendor(config.state_dir.parent, clock)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    let_everybody_into(tmp_path)
    os.mknod(tmp_path / nodes.NODE, stat.S_IFCHR | 0o660, os.makedev(1, 7))
    (tmp_path / nodes.LISTED).write_text("[]")
    folder = tmp_path / "state"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=0755", "tmpfs", folder]
    ).returncode:
        pytest.skip("cannot mount")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.fixture
def plane() -> Iterator[ControlPlaneDouble]:
    with ControlPlaneDouble("gpu-01") as double:
        double.settings = HostSettings(
            mode="enforce", managed=(nodes.UUID,), grace_s=1, grace_followed_s=1, sample_s=1
        )
        yield double


@pytest.fixture
def agent(small_disk: Path, plane: ControlPlaneDouble, monkeypatch) -> Iterator[Agent]:
    monkeypatch.setattr(
        "workers.host.agent.open_users", lambda config: Directory(alice=ALICE, bob=BOB)
    )
    monkeypatch.setattr("workers.host.loop.Watchdog", Systemd)
    config = Config(
        host="gpu-01", url=plane.url, token=TOKEN, state_dir=small_disk,
        vendor="tests.host.test_full_disk:open_vendor", gate="acl",
    )  # fmt: skip
    made = Agent(config, leave=lambda code: None)
    yield made
    made.stop()


def fill(folder: Path) -> None:
    descriptor = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(descriptor, b"x" * 4096):
            pass
    os.close(descriptor)


def may_open(folder: Path, uid: int) -> bool:
    def attempt() -> int:
        try:
            os.close(os.open(folder.parent / nodes.NODE, os.O_RDWR))
        except OSError as error:
            return error.errno or -1
        return 0

    outcome = as_person(uid, attempt)
    assert outcome in (0, errno.EACCES)
    return outcome == 0


def ignores_sigterm(folder: Path):
    def body(ready):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.open(folder.parent / nodes.NODE, os.O_RDWR)
        ready()
        wait_for_ever()

    return body


def problems(plane: ControlPlaneDouble) -> set[str]:
    return {problem.code for problem in plane.samples[-1].health} if plane.samples else set()


def test_on_a_full_disk_a_slot_ends_and_the_next_begins_and_it_is_told(small_disk, plane, agent):
    plane.grants = (
        grant(nodes.UUID, "alice", end_s=6),
        grant(nodes.UUID, "bob", booking=2, start_s=6),
    )
    agent.start()
    until(lambda: may_open(small_disk, ALICE))

    with child(ALICE, ignores_sigterm(small_disk)) as stubborn:
        (small_disk.parent / nodes.LISTED).write_text(json.dumps([stubborn.pid]))
        fill(small_disk)
        assert stubborn.reap() == signal.SIGKILL

    until(lambda: may_open(small_disk, BOB))
    assert not may_open(small_disk, ALICE)
    until(lambda: "disk" in problems(plane))
    until(lambda: plane.kinds().count("opened") == 2)
    assert plane.kinds().count("killed") == 1


def test_on_a_full_disk_a_new_plan_counts(small_disk, plane, agent):
    agent.start()
    until(lambda: agent.plans.stored)
    until(lambda: plane.samples)
    fill(small_disk)

    plane.grants = (grant(nodes.UUID, "alice"),)
    agent.nudge()

    until(lambda: may_open(small_disk, ALICE))
    until(lambda: "disk" in problems(plane))
    # Full, but not silent: systemd would start it again and again.
    heard = agent._loop._watchdog.heard
    until(lambda: agent._loop._watchdog.heard > heard + 2, limit_s=10)


def test_an_agent_that_starts_on_a_full_disk_works(small_disk, plane, agent):
    fill(small_disk)
    plane.grants = (grant(nodes.UUID, "alice"),)
    agent.start()

    until(lambda: may_open(small_disk, ALICE))
    until(lambda: "disk" in problems(plane))
