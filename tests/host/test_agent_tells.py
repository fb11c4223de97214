"""The whole agent tells people on real terminals, as root."""

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest

from reservations.core.wire import HostSettings
from tests.host import nodes
from tests.host.control_plane import TOKEN, ControlPlaneDouble, grant
from tests.host.people import Directory, child, let_everybody_into, wait_for_ever
from tests.host.screens import Screen
from tests.waiting import until
from workers.host.agent import Agent
from workers.host.config import Config

pytestmark = pytest.mark.root
# Of no other test: everybody with such a uid on this machine is told.
ALICE, BOB = 61921, 61922


@pytest.fixture
def folder(tmp_path: Path):
    let_everybody_into(tmp_path)
    # The numbers of /dev/full, which nothing on a machine keeps open.
    os.mknod(tmp_path / nodes.NODE, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    (tmp_path / nodes.NODE).chmod(0o666)
    (tmp_path / nodes.LISTED).write_text("[]")
    return tmp_path


@pytest.fixture
def plane():
    with ControlPlaneDouble("gpu-01") as double:
        double.settings = HostSettings(
            mode="warn", managed=(nodes.UUID,), grace_s=30, sample_s=1, intruder_grace_s=60
        )
        yield double


@pytest.fixture
def agents(folder, plane, monkeypatch):
    monkeypatch.setattr(
        "workers.host.agent.open_users", lambda config: Directory(alice=ALICE, bob=BOB)
    )
    made = []

    def start():
        config = Config(
            host="gpu-01", url=plane.url, token=TOKEN, state_dir=folder, run_dir=folder / "run",
            vendor="tests.host.nodes:open_vendor", gate="acl",
        )  # fmt: skip
        made.append(Agent(config, leave=lambda code: None))
        made[-1].start()
        return made[-1]

    yield start
    for agent in made:
        agent.stop()


@pytest.fixture
def screens():
    made = [Screen(ALICE), Screen(BOB)]
    yield made
    for one in made:
        one.close()


def public(folder):
    path = folder / "run" / "devices.json"
    return json.loads(path.read_bytes()) if path.exists() else {"at": "", "devices": []}


def holds(folder):
    def body(ready):
        os.open(folder / nodes.NODE, os.O_RDWR)
        ready()
        wait_for_ever()

    return body


def test_an_end_is_told_once_whoever_restarts_and_everybody_can_read_who_has_what(
    folder, plane, agents, screens
):
    alices, bobs = screens
    plane.grants = (grant(nodes.UUID, "alice", booking=7, start_s=-3600, end_s=240),)
    first = agents()
    until(lambda: "Berth: your booking of GPU 0 on gpu-01 ends at" in alices.text())
    assert f"in 4 min. Save your work, or extend it: {plane.url}/bookings/7/" in alices.text()
    first.stop()

    before = public(folder)["at"]
    second = agents()
    until(lambda: public(folder)["at"] > before and public(folder)["devices"][0]["booked_by"])
    assert public(folder)["devices"][0]["booked_by"] == ["alice"]
    plane.grants = (grant(nodes.UUID, "alice", booking=7, start_s=-3600, end_s=50),)
    second.nudge()
    until(lambda: alices.shown().count(b"\a") == 2)
    assert bobs.shown() == b""


def test_whoever_uses_what_they_have_not_booked_is_told(folder, plane, agents, screens):
    alices, bobs = screens
    with child(BOB, holds(folder)) as train:
        (folder / nodes.LISTED).write_text(json.dumps([train.pid]))
        agents()
        until(lambda: "not booked" in bobs.text())
        assert f"your processes ({train.pid}) on GPU 0 on gpu-01" in bobs.text()
        until(lambda: public(folder)["devices"][0]["verdict"] == "unbooked_use")
        assert public(folder)["devices"][0]["held_by"] == ["bob"]
    assert alices.shown() == b""


def test_in_mode_enforce_an_end_is_told_with_the_signal_also_past_a_full_terminal(
    folder, plane, agents, screens
):
    alices, _ = screens
    full = Screen(ALICE)
    full.fill()
    plane.settings = msgspec.structs.replace(plane.settings, mode="enforce")
    plane.grants = (grant(nodes.UUID, "alice", start_s=-3600, end_s=3),)
    with child(ALICE, holds(folder)) as train:
        (folder / nodes.LISTED).write_text(json.dumps([train.pid]))
        agents()
        train.reap()
        until(
            lambda: f"your processes ({train.pid}) on GPU 0 on gpu-01 were asked" in alices.text()
        )
    full.close()


def test_in_mode_observe_nobody_is_told_and_the_file_is_written(folder, plane, agents, screens):
    plane.settings = msgspec.structs.replace(plane.settings, mode="observe")
    plane.grants = (grant(nodes.UUID, "alice", start_s=-3600, end_s=30),)
    agents()
    until(lambda: public(folder)["devices"] and public(folder)["devices"][0]["booked_by"])
    assert [one.shown() for one in screens] == [b"", b""]
