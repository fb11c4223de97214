"""The whole agent on a real device node, as root: the kernel refuses, allows, and refuses again."""

import contextlib
import errno
import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from reservations.core.wire import HostSettings
from tests.host import nodes
from tests.host.control_plane import TOKEN, ControlPlaneDouble, grant, real_now
from tests.host.dead_mount import CannotMount, dead_mount
from tests.host.kit import ROOT
from tests.host.people import Directory, as_person, child, let_everybody_into, wait_for_ever
from tests.waiting import until
from workers.host import status
from workers.host.agent import Agent
from workers.host.config import Config

pytestmark = pytest.mark.root
ALICE, BOB, ACCESS_GROUP = 61001, 61002, 61100


@pytest.fixture
def folder(tmp_path: Path):
    let_everybody_into(tmp_path)
    # The numbers of /dev/full, which nothing on a machine keeps open.
    os.mknod(tmp_path / nodes.NODE, stat.S_IFCHR | 0o660, os.makedev(1, 7))
    os.chown(tmp_path / nodes.NODE, 0, ACCESS_GROUP)
    os.chmod(tmp_path / nodes.NODE, 0o660)
    (tmp_path / nodes.LISTED).write_text("[]")
    return tmp_path


@pytest.fixture
def plane():
    with ControlPlaneDouble("gpu-01") as double:
        double.settings = HostSettings(
            mode="enforce", managed=(nodes.UUID,), grace_s=5, sample_s=1, intruder_grace_s=60
        )
        yield double


@pytest.fixture
def agent(folder, plane, monkeypatch):
    monkeypatch.setattr(
        "workers.host.agent.open_users", lambda config: Directory(alice=ALICE, bob=BOB)
    )
    made = Agent(
        Config(
            host="gpu-01",
            url=plane.url,
            token=TOKEN,
            state_dir=folder,
            vendor="tests.host.nodes:open_vendor",
            gate="acl",
        ),
        leave=lambda code: None,
    )
    yield made
    made.stop()


def opens(folder, uid, *, groups=()):
    def attempt():
        try:
            os.close(os.open(folder / nodes.NODE, os.O_RDWR))
        except OSError as error:
            return error.errno
        return 0

    return as_person(uid, attempt, groups=groups)


def test_a_node_is_closed_before_the_slot_open_in_it_and_cleared_after_it(folder, plane, agent):
    plane.grants = (grant(nodes.UUID, "alice", start_s=3, end_s=9),)
    agent.start()
    until(lambda: agent.plans.stored)
    until(lambda: opens(folder, ALICE) == errno.EACCES)

    until(lambda: opens(folder, ALICE) == 0)
    assert opens(folder, BOB) == errno.EACCES
    with child(ALICE, _holds(folder)) as train, child(ALICE, _idles) as shell:
        (folder / nodes.LISTED).write_text(json.dumps([train.pid]))

        assert train.reap() == signal.SIGTERM
        assert not shell.ended()
    assert opens(folder, ALICE) == errno.EACCES
    until(lambda: "gone" in plane.kinds())
    assert plane.kinds() == ["agent_started", "opened", "closed", "overrun", "signalled", "gone"]
    assert plane.find("signalled").unix_name == "alice"
    assert plane.find("signalled").latency_s < 1.5


def test_a_job_that_ignores_sigterm_is_dead_half_a_second_after_its_grace(folder, plane, agent):
    plane.settings = msgspec.structs.replace(plane.settings, grace_s=2)
    mine = grant(nodes.UUID, "alice", end_s=5)
    plane.grants = (mine,)
    agent.start()
    until(lambda: opens(folder, ALICE) == 0)
    with child(ALICE, _holds(folder, ignores_sigterm=True)) as train:
        (folder / nodes.LISTED).write_text(json.dumps([train.pid]))

        assert train.reap() == signal.SIGKILL
        late_s = (real_now() - mine.end).total_seconds()
    assert 2 <= late_s <= 2.5


def test_a_device_that_drives_a_display_is_left_open_until_it_is_forced(folder, plane, agent):
    (folder / nodes.DISPLAY).touch()
    plane.grants = (grant(nodes.UUID, "alice"),)
    agent.start()

    until(lambda: any(one.code == "display" for sent in plane.samples for one in sent.health))
    assert opens(folder, BOB, groups=(ACCESS_GROUP,)) == 0

    plane.settings = msgspec.structs.replace(plane.settings, forced_displays=(nodes.UUID,))
    agent.nudge()
    until(lambda: opens(folder, BOB, groups=(ACCESS_GROUP,)) == errno.EACCES)


def test_the_node_of_a_device_that_is_divided_is_given_back_for_its_parts_need_it(
    folder, plane, agent, monkeypatch
):
    monkeypatch.setattr("workers.host.links.DEVICES_EVERY_S", 0.1)
    agent.start()
    until(lambda: opens(folder, BOB, groups=(ACCESS_GROUP,)) == errno.EACCES)

    (folder / nodes.DIVIDED).touch()
    until(lambda: opens(folder, BOB, groups=(ACCESS_GROUP,)) == 0)

    (folder / nodes.DIVIDED).unlink()
    until(lambda: opens(folder, BOB, groups=(ACCESS_GROUP,)) == errno.EACCES)


def test_a_list_of_garbage_stops_nobody_and_is_told_with_the_heartbeat(folder, plane, agent):
    plane.grants = (grant(nodes.UUID, "alice", start_s=-1, end_s=3),)
    agent.start()
    until(lambda: opens(folder, ALICE) == 0)
    with child(ALICE, _holds(folder)) as train, child(BOB, _idles) as other:
        (folder / nodes.LISTED).write_text(json.dumps([1, other.pid]))

        until(lambda: "closed" in plane.kinds())
        until(lambda: "process_list" in {one.code for sent in plane.samples for one in sent.health})
        until(lambda: plane.samples[-1].devices[0].processes is None)
        assert not train.ended()
        assert not other.ended()

        (folder / nodes.LISTED).write_text(json.dumps([train.pid]))
        assert train.reap() == signal.SIGTERM
        assert not other.ended()


def _holds(folder, *, ignores_sigterm=False):
    def body(ready):
        if ignores_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.open(folder / nodes.NODE, os.O_RDWR)
        ready()
        wait_for_ever()

    return body


def _idles(ready):
    ready()
    wait_for_ever()


def test_readings_that_fail_in_the_middle_of_a_slot_stop_nobody_and_the_gate_goes_on(
    folder, plane, agent
):
    plane.grants = (grant(nodes.UUID, "alice", end_s=6),)
    agent.start()
    until(lambda: opens(folder, ALICE) == 0)
    with child(ALICE, _holds(folder)) as train:
        (folder / nodes.LISTED).write_text(json.dumps([train.pid]))
        until(lambda: (seen := status.read(folder)) and seen.devices[0].holders)
        (folder / nodes.LISTED).unlink()
        until(lambda: status.read(folder).devices[0].health == "unknown")

        until(lambda: opens(folder, ALICE) == errno.EACCES)
        ended = status.read(folder).at
        until(lambda: (status.read(folder).at - ended).total_seconds() > 2, limit_s=15)
        assert not train.ended()

        (folder / nodes.LISTED).write_text(json.dumps([train.pid]))
        assert train.reap() == signal.SIGTERM


def test_a_dead_mount_in_another_process_delays_no_end(folder, plane, agent):
    plane.grants = (grant(nodes.UUID, "alice", end_s=6),)
    with contextlib.ExitStack() as stack:
        try:
            mount = stack.enter_context(dead_mount(folder / "mount"))
        except CannotMount as error:
            pytest.skip(str(error))
        other = stack.enter_context(child(BOB, _keeps_open(mount)))
        assert _hangs(f"/proc/{other.pid}/fd"), "a plain look at it must not come back"
        agent.start()
        until(lambda: opens(folder, ALICE) == 0)
        train = stack.enter_context(child(ALICE, _holds(folder)))
        (folder / nodes.LISTED).write_text(json.dumps([train.pid]))

        assert train.reap() == signal.SIGTERM

        assert until(lambda: plane.find("signalled")).latency_s < 1
        assert not other.ended()


@pytest.mark.parametrize("running", [True, False])
def test_a_released_host_has_its_nodes_back_as_they_were(folder, plane, agent, running):
    before = (folder / nodes.NODE).stat()
    agent.start()
    until(lambda: opens(folder, BOB, groups=(ACCESS_GROUP,)) == errno.EACCES)
    if not running:
        agent.stop()

    done = subprocess.run(
        [sys.executable, "-m", "workers.host", "release-host"],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "BERTH_STATE_DIR": str(folder),
            "BERTH_VENDOR": "tests.host.nodes:open_vendor",
            "BERTH_GATE": "acl",
            "BERTH_RUN_DIR": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=40,
    )

    assert done.returncode == 0, done
    after = (folder / nodes.NODE).stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    assert os.listxattr(folder / nodes.NODE) == []
    assert opens(folder, BOB, groups=(ACCESS_GROUP,)) == 0


def _keeps_open(path):
    def body(ready):
        os.open(path, os.O_PATH)
        ready()
        wait_for_ever()

    return body


def _hangs(folder):
    """Whether looking at every descriptor of a folder of /proc takes longer than it ever may."""
    look = subprocess.Popen(["find", "-L", folder, "-maxdepth", "1"], stdout=subprocess.DEVNULL)
    try:
        look.wait(1)
    except subprocess.TimeoutExpired:
        return True
    finally:
        look.kill()
        look.wait(10)
    return False
