"""What the agent does while something else is down, lies, or comes back."""

from datetime import timedelta

import msgspec
import pytest

from tests.host.control_plane import grant, real_now
from tests.host.kit import is_alive
from tests.waiting import until
from workers.host import status
from workers.host.clock import HostClock


def test_without_a_control_plane_slots_start_and_end_on_time(sim, plane):
    plane.grants = (
        grant(sim.uuids[0], "alice", booking=1, end_s=4),
        grant(sim.uuids[1], "bob", booking=2, start_s=4),
    )
    end = plane.grants[0].end
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    plane.down()

    until(lambda: not sim.may_open("alice"))
    assert (real_now() - end).total_seconds() < 1
    until(lambda: sim.granted("bob", index=1))
    assert (real_now() - end).total_seconds() < 1
    until(lambda: len(agent.spool) >= 2)


@pytest.mark.slow
def test_at_an_unconfirmed_end_the_holder_is_stopped_only_when_somebody_else_begins(sim, plane):
    plane.grants = (
        grant(sim.uuids[0], "alice", booking=1, end_s=9),
        grant(sim.uuids[0], "bob", booking=2, start_s=11.5),
    )
    follows = plane.grants[1].start
    sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    job = sim.job("alice")
    plane.down()

    until(lambda: not sim.may_open("alice"), limit_s=12)
    until(lambda: not is_alive(job))
    assert real_now() >= follows
    until(lambda: sim.granted("bob"))


def test_after_an_outage_each_report_arrives_once(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice", end_s=3),)
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice") and not len(agent.spool))
    plane.lose_answers = True
    until(lambda: not sim.may_open("alice"))
    # Stored there, but the answer never came: the agent must send it again.
    until(lambda: plane.kinds().count("closed") == 1)
    until(lambda: len(plane.received) > len(plane.reports))
    plane.down()

    plane.lose_answers = False
    plane.up()

    until(lambda: not len(agent.spool))
    kinds = plane.kinds()
    assert kinds.count("opened") == kinds.count("closed") == 1
    assert len({report.id for report in plane.reports}) == len(plane.reports)


def test_a_report_that_is_never_accepted_holds_up_no_other(sim, plane):
    plane.poison = {"agent_started"}
    plane.grants = (grant(sim.uuids[0], "alice", end_s=3),)
    agent = sim.agent(plane.url)

    until(lambda: plane.find("closed"))

    until(lambda: not len(agent.spool))
    assert "agent_started" not in plane.kinds()


def test_a_silent_control_plane_does_not_delay_an_edge(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice", end_s=3),)
    end = plane.grants[0].end
    sim.agent(plane.url)
    until(lambda: sim.granted("alice"))

    plane.hold.clear()

    until(lambda: not sim.may_open("alice"))
    assert (real_now() - end).total_seconds() < 1


def test_garbage_and_another_hosts_plan_leave_the_stored_one_standing(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    good = agent.plans.etag

    plane.spoil = b"<html>gateway</html>"
    agent.nudge()
    until(lambda: "plan_refused" in plane.kinds())
    foreign = msgspec.structs.replace(plane.plan(), host="sim-b", grants=())
    plane.spoil = msgspec.json.encode(foreign)
    agent.nudge()
    until(lambda: plane.kinds().count("plan_refused") == 2)

    assert agent.plans.etag == good
    assert sim.granted("alice")
    assert plane.reports[-1].text == "plan of another host: sim-b"


def test_an_older_plan_of_the_same_epoch_is_refused_and_one_of_a_new_epoch_accepted(sim, plane):
    older = msgspec.structs.replace(plane.plan(), etag="other", grants=())
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))

    plane.spoil = msgspec.json.encode(older)
    agent.nudge()
    refused = until(lambda: plane.find("plan_refused"))
    assert refused.text == "plan older than the stored one"
    assert sim.granted("alice")

    plane.spoil = msgspec.json.encode(msgspec.structs.replace(older, epoch="restored"))
    agent.nudge()
    until(lambda: agent.plans.stored.plan.epoch == "restored")


def test_a_wrong_token_changes_nothing_and_is_said(sim, plane):
    agent = sim.agent(plane.url, token="another-hosts-token")

    found = until(lambda: status.read(sim.state_dir))
    until(lambda: any(p.text.startswith("401") for p in status.read(sim.state_dir).health))

    assert found.grants == ()
    assert sim.gate().group_open
    assert agent.plans.stored is None


def test_with_the_token_of_another_host_nothing_is_told_of_that_host(sim, plane):
    plane.host = "sim-b"
    agent = sim.agent(plane.url)

    until(lambda: plane.plans_asked >= 2)
    until(lambda: any(p.code == "plan_refused" for p in status.read(sim.state_dir).health))

    assert plane.inventory is None
    assert plane.samples == plane.received == []
    assert agent.plans.stored is None
    assert sim.gate().group_open


def test_a_grant_that_vanishes_is_kept_and_reported(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    job = sim.job("alice")

    plane.grants = ()
    agent.nudge()

    vanished = until(lambda: plane.find("grant_vanished"))
    assert vanished.booking == 1
    assert sim.granted("alice")
    assert is_alive(job)


def test_a_corrupt_plan_closes_the_devices_and_stops_nobody_until_a_plan_is_fetched(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    first = sim.agent(plane.url)
    until(lambda: sim.granted("alice"))
    job = sim.job("alice")
    plane.down()
    first.stop()
    path = sim.state_dir / "plan.json"
    path.write_bytes(path.read_bytes().replace(b"alice", b"mallo"))

    sim.agent(plane.url)

    until(lambda: not sim.may_open("alice"))
    assert (sim.state_dir / "plan.json.corrupt").exists()
    until(lambda: _problem(sim, "plan_corrupt"))
    assert is_alive(job)
    plane.up()
    until(lambda: sim.granted("alice"))
    assert is_alive(job)


@pytest.mark.parametrize("broker", [False, True])
def test_a_second_agent_of_the_same_host_is_refused(sim, plane, redis_url, broker):
    sim.agent(plane.url)

    second = sim.worker(plane.url, redis_url=redis_url if broker else "")

    assert second.wait(20) == 1
    log = (sim.root / "worker.log").read_text()
    assert "another agent already enforces" in log


@pytest.mark.slow
def test_an_agent_that_is_killed_and_restarted_goes_on_with_the_ladder(sim, plane):
    plane.settings = msgspec.structs.replace(sim.settings, grace_s=6)
    hers, his = grant(sim.uuids[0], "alice"), grant(sim.uuids[1], "bob", booking=2)
    plane.grants = (hers, his)
    worker = sim.worker(plane.url)
    until(lambda: sim.granted("alice"), limit_s=20)
    stubborn, others = sim.job("alice", profile="ignore-term"), sim.job("bob", index=1)
    plane.grants = (msgspec.structs.replace(hers, end=real_now() + timedelta(seconds=1)), his)
    signalled = until(lambda: plane.find("signalled"), limit_s=15)
    worker.kill()
    worker.wait(10)
    assert sim.granted("bob", index=1)
    # Nothing may depend on the control plane while the agent comes back.
    plane.down()

    sim.worker(plane.url)

    until(lambda: not is_alive(stubborn), limit_s=15)
    plane.up()
    killed = until(lambda: plane.find("killed"))
    grace_s = (killed.at - signalled.at).total_seconds()
    assert 5.5 < grace_s < 9, "the grace counts from the signal of the agent that was killed"
    assert plane.kinds().count("signalled") == 1
    assert is_alive(others)
    assert sim.granted("bob", index=1)


def test_a_wall_clock_that_is_off_is_a_problem_and_moves_no_slot(sim, plane):
    ahead = HostClock(wall=lambda: real_now() + timedelta(minutes=2))
    agent = sim.agent(plane.url, clock=ahead)
    until(lambda: _problem(sim, "clock_skew"))
    assert abs(agent.clock.now() - real_now()) < timedelta(seconds=30)


def _problem(sim, code):
    found = status.read(sim.state_dir)
    return found and any(problem.code == code for problem in found.health)
