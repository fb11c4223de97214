"""The loop itself: what it survives, and how it leaves."""

import pytest

from tests.host.control_plane import grant
from tests.waiting import until
from workers.host.agent import Agent
from workers.host.loop import LOOP_LEFT


def test_a_tick_that_fails_is_repeated_and_edges_still_come(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    (sim.state_dir / "gate.json").mkdir()
    agent = sim.agent(plane.url)
    until(lambda: agent.plans.stored)
    until(lambda: any(samples.devices for samples in plane.samples))

    (sim.state_dir / "gate.json").rmdir()

    until(lambda: sim.granted("alice"))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_loop_that_ends_unasked_takes_the_process_with_it(sim, plane, monkeypatch):
    left = []
    agent = Agent(sim.config(plane.url), leave=left.append)

    def breaks():
        raise SystemExit

    monkeypatch.setattr(agent, "tick", breaks)
    agent.start()

    until(lambda: left)
    assert left == [LOOP_LEFT]
    agent.stop()


def test_a_loop_that_was_asked_to_end_leaves_quietly(sim, plane):
    left = []
    agent = Agent(sim.config(plane.url), leave=left.append)
    agent.start()

    agent.stop()

    assert left == []


def test_a_second_look_with_nothing_changed_does_nothing(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent = sim.agent(plane.url)
    until(lambda: plane.find("opened") and not len(agent.spool))
    told, gate = len(plane.received), (sim.state_dir / "gate.json").stat().st_mtime_ns
    agent.stop()

    agent.tick()
    agent.tick()

    assert len(agent.spool) == 0
    assert len(plane.received) == told
    assert (sim.state_dir / "gate.json").stat().st_mtime_ns == gate


def test_a_watched_host_is_sampled_every_second_and_an_unwatched_one_is_not(sim, plane):
    plane.settings = type(sim.settings)(managed=tuple(sim.uuids), sample_s=3600)
    plane.watched = True
    sim.agent(plane.url)

    until(lambda: len(plane.samples) >= 3)

    apart_s = (plane.samples[-1].at - plane.samples[-2].at).total_seconds()
    assert 0.9 < apart_s < 2


def test_what_was_done_just_before_a_crash_is_told_after_it(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent = sim.agent(plane.url)
    until(lambda: plane.find("opened"))
    agent.stop()
    # As if the crash had come between the ladder and the spool, and the report had never been sent.
    (sim.state_dir / "spool.jsonl").unlink()
    opened = plane.find("opened")
    plane.received.clear()

    sim.agent(plane.url)

    until(lambda: plane.find("agent_started"))
    assert plane.find("opened") == opened


def test_a_flood_of_nudges_costs_a_few_looks_and_the_last_is_heard(sim, plane):
    agent = sim.agent(plane.url)
    until(lambda: agent.plans.stored)
    asked = plane.plans_asked

    for _ in range(500):
        agent.nudge()
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent.nudge()

    until(lambda: sim.granted("alice"))
    assert plane.plans_asked - asked <= 10
