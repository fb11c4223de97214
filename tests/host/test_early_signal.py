"""The early signal from the plan to the job: a real agent, real jobs, real time."""

from tests.host.control_plane import grant
from tests.host.kit import is_alive
from tests.waiting import until

# Ten minutes before the end is this many seconds from now.
DUE_S = 3.0


def test_a_job_hears_it_ten_minutes_before_its_end_and_after_a_restart_nobody_hears_it_again(
    sim, plane
):
    asked = grant(sim.uuids[0], "alice", start_s=-3600, end_s=600 + DUE_S, early_signal=True)
    plane.grants = (asked, grant(sim.uuids[1], "alice", booking=2))
    agent = sim.agent(plane.url)
    until(lambda: sim.granted("alice") and sim.granted("alice", index=1))
    # Started with the default action, which is to end.
    job, other = sim.job("alice"), sim.job("alice", index=1)

    told = until(lambda: plane.find("early_signalled"))

    assert (told.booking, told.device, told.unix_name) == (1, sim.uuids[0], "alice")
    assert told.pids == (job,)
    until(lambda: not is_alive(job))
    assert 0 <= (told.at - asked.end).total_seconds() + 600 < 3
    agent.stop()
    late = sim.job("alice")
    sim.agent(plane.url)
    until(lambda: [r.kind for r in plane.reports].count("agent_started") == 2)
    until(lambda: any(late in pids_of(samples) for samples in plane.samples))
    assert is_alive(late)
    assert is_alive(other)
    assert [r.kind for r in plane.reports].count("early_signalled") == 1


def pids_of(samples):
    return [process.pid for device in samples.devices for process in device.processes or ()]
