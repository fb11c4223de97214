"""What the agent does while something on its own host is wrong: its clock, its names, its own absence."""

import subprocess
import threading
from datetime import timedelta

import msgspec
import pytest

from tests.host.control_plane import grant, real_now
from tests.host.kit import is_alive
from tests.servers import free_port, wait_for_port
from tests.waiting import until
from webapp.embedded import redis_command
from workers.host import status
from workers.host.clock import HostClock
from workers.host.names import SimulatedUsers


class SlowDirectory:
    """The people of the simulated host, some of whose look-ups hang until they are let go."""

    def __init__(self, sim, *slow) -> None:
        self._users = SimulatedUsers(sim.simulated)
        self.slow = set(slow)
        self.answers = threading.Event()

    def uid_of(self, unix_name):
        if unix_name in self.slow:
            self.answers.wait(60)
        return self._users.uid_of(unix_name)

    def name_of(self, uid):
        self.answers.wait(60)
        return self._users.name_of(uid)


@pytest.fixture
def directory(sim, monkeypatch):
    made = SlowDirectory(sim)
    monkeypatch.setattr("workers.host.agent.open_users", lambda config: made)
    yield made
    made.answers.set()


@pytest.fixture
def broker(tmp_path):
    port = free_port()
    process = subprocess.Popen(
        [*redis_command(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    wait_for_port(port, process)
    process.url = f"redis://127.0.0.1:{port}/0"
    yield process
    process.kill()
    process.wait(10)


def looks(sim, seconds):
    """Waits until the agent has looked for that much longer."""
    began = status.read(sim.state_dir).at
    until(lambda: status.read(sim.state_dir).at - began > timedelta(seconds=seconds), limit_s=20)


def has_problem(sim, code):
    found = status.read(sim.state_dir)
    return found and any(problem.code == code for problem in found.health)


def test_a_web_server_without_its_database_delays_no_edge(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice", end_s=4), grant(sim.uuids[1], "bob", start_s=4))
    end = plane.grants[0].end
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    plane.fails = 503

    until(lambda: not sim.may_open("alice") and sim.granted("bob", index=1))

    assert abs(real_now() - end) < timedelta(seconds=1)
    plane.fails = None
    until(lambda: plane.find("closed"), limit_s=15)
    until(lambda: not len(agent.spool))


def test_a_broker_that_dies_in_the_middle_of_a_slot_delays_no_edge(sim, plane, broker):
    plane.grants = (grant(sim.uuids[0], "alice", end_s=8), grant(sim.uuids[1], "bob", start_s=8))
    end = plane.grants[0].end
    worker = sim.worker(plane.url, redis_url=broker.url)
    until(lambda: sim.granted("alice"))
    broker.kill()

    until(lambda: not sim.may_open("alice") and sim.granted("bob", index=1), limit_s=15)

    assert abs(real_now() - end) < timedelta(seconds=1.5)
    assert worker.poll() is None


def test_past_the_instant_up_to_which_a_plan_is_complete_nothing_is_changed(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice", end_s=5),)
    plane.complete_until = real_now() + timedelta(seconds=3)
    sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    until(lambda: has_problem(sim, "plan_incomplete"))
    intruder = sim.job("bob")

    looks(sim, 4)

    assert real_now() > plane.grants[0].end
    assert sim.granted("alice")
    assert is_alive(intruder)


def test_after_a_reboot_grants_stand_and_nobody_is_stopped_until_a_plan_is_fetched(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"), grant(sim.uuids[1], "bob", start_s=4))
    before = sim.agent(plane.url, clock=HostClock(boot="before"))
    until(lambda: sim.granted("alice"))
    before.stop()
    plane.down()

    sim.agent(plane.url, clock=HostClock(boot="after"))
    intruder = sim.job("carol")
    until(lambda: sim.granted("bob", index=1))
    looks(sim, 3)

    assert sim.granted("alice")
    assert is_alive(intruder)
    assert not status.read(sim.state_dir).may_stop
    plane.up()
    until(lambda: not is_alive(intruder), limit_s=15)


def test_steps_of_the_wall_clock_in_the_middle_of_a_slot_move_no_edge(sim, plane):
    step = [timedelta(0)]
    plane.grants = (grant(sim.uuids[0], "alice", end_s=7),)
    end = plane.grants[0].end
    sim.agent(plane.url, clock=HostClock(wall=lambda: real_now() + step[0]))
    until(lambda: sim.granted("alice"))
    plane.down()

    step[0] = timedelta(hours=2)
    until(lambda: has_problem(sim, "clock_skew"))
    assert sim.granted("alice")
    step[0] = timedelta(hours=-2)
    until(lambda: not sim.may_open("alice"))

    assert abs(real_now() - end) < timedelta(seconds=1)


def test_a_host_that_was_down_across_an_end_closes_and_stops_at_its_first_look(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice", end_s=4),)
    first = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    job = sim.job("alice")
    # Late enough for the plan to say that nobody can move this end any more.
    end = plane.grants[0].end
    until(lambda: first.plans.in_force().state.confirms(end))
    first.stop()
    plane.down()
    until(lambda: real_now() > end)
    assert sim.granted("alice")
    assert is_alive(job)

    began = real_now()
    sim.agent(plane.url)

    until(lambda: not sim.may_open("alice") and not is_alive(job))
    assert real_now() - began < timedelta(seconds=1.5)


def test_a_ladder_goes_on_within_a_second_of_the_restart(sim, plane):
    plane.settings = msgspec.structs.replace(sim.settings, grace_s=3)
    plane.grants = (grant(sim.uuids[0], "alice", end_s=2),)
    first = sim.agent(plane.url)
    stubborn = sim.job("alice", profile="ignore-term")
    signalled = until(lambda: plane.find("signalled"))
    first.stop()
    until(lambda: real_now() - signalled.at > timedelta(seconds=3))
    assert is_alive(stubborn)

    began = real_now()
    sim.agent(plane.url)

    until(lambda: not is_alive(stubborn))
    assert real_now() - began < timedelta(seconds=1)


def test_a_name_that_cannot_be_looked_up_holds_up_nobody_else(sim, plane, directory):
    directory.slow = {"carol"}
    plane.grants = (
        grant(sim.uuids[0], "alice", booking=1, start_s=3, end_s=8),
        grant(sim.uuids[1], "carol", booking=2),
    )
    sim.agent(plane.url)
    # Whom nothing names: the directory hangs for uids as well.
    stranger = sim.job("bob")

    until(lambda: sim.granted("alice"))
    assert real_now() - plane.grants[0].start < timedelta(seconds=1)
    until(lambda: not is_alive(stranger))
    until(lambda: not sim.may_open("alice"))
    assert real_now() - plane.grants[0].end < timedelta(seconds=1)
    assert not sim.may_open("carol", index=1)

    directory.answers.set()
    until(lambda: sim.granted("carol", index=1))


def test_with_a_directory_that_hangs_a_restarted_agent_knows_who_was_named_before(
    sim, plane, directory
):
    plane.grants = (grant(sim.uuids[0], "alice"), grant(sim.uuids[1], "bob", start_s=6))
    first = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    first.stop()
    directory.slow = {"alice", "bob"}

    sim.agent(plane.url)

    until(lambda: sim.granted("bob", index=1))
    assert real_now() - plane.grants[1].start < timedelta(seconds=1)
    assert sim.granted("alice")


def test_a_cancel_that_is_heard_after_the_start_closes_the_device_at_once(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice", booking=1),)
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))

    plane.grants, plane.cancelled = (), (1,)
    agent.nudge()

    until(lambda: not sim.may_open("alice"))
    assert "grant_vanished" not in plane.kinds()


def test_of_two_overlapping_grants_the_earlier_is_honoured_nobody_is_stopped_and_it_is_told(
    sim, plane
):
    plane.grants = (
        grant(sim.uuids[0], "alice", booking=1, start_s=-60),
        grant(sim.uuids[0], "bob", booking=2, start_s=-30),
    )
    sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    job = sim.job("bob")

    overlap = until(lambda: plane.find("overlap"))
    looks(sim, 3)

    assert overlap.booking == 2
    assert not sim.granted("bob")
    assert is_alive(job)
