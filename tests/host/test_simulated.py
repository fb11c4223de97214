"""Jobs on simulated devices: real processes, believable figures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from reservations.core.enforcement import GateState
from tests.host.clocks import Hands
from tests.host.kit import ROOT, is_alive
from tests.waiting import until
from workers.host.gates.record import RecordGate
from workers.host.simulation import GIB, Job, load
from workers.host.vendors.simulated import SimulatedVendor


def simjob(sim, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "workers.host.simjob", *arguments, "--state-root", sim.root],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_belongs_to_nobodys_tree_and_runs_under_its_persons_uid(sim):
    pid = sim.job("bob")

    status = Path(f"/proc/{pid}/status").read_text()
    parent = int(status.split("PPid:")[1].split()[0])
    assert parent != os.getpid()
    if os.geteuid() == 0:
        assert status.split("Uid:")[1].split()[:4] == ["61002"] * 4
        assert status.split("Groups:")[1].splitlines()[0].strip() == ""


def test_a_job_is_listed_until_it_is_stopped(sim):
    pid = sim.job("alice", profile="notebook")

    listed = simjob(sim, "list").stdout
    stopped = simjob(sim, "stop", str(pid))

    assert listed.split() == [str(pid), "sim-a[0]", "alice", "notebook"]
    assert stopped.returncode == 0
    assert not is_alive(pid)
    assert simjob(sim, "list").stdout == ""


def test_stopping_ends_a_job_that_ignores_sigterm_too(sim):
    pid = sim.job("alice", profile="ignore-term")

    assert simjob(sim, "stop", "--all").returncode == 0

    until(lambda: not is_alive(pid))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("start", "--user", "mallory", "--host", "sim-a", "--index", "0"), "knows nobody named"),
        (("start", "--user", "bob", "--host", "sim-a", "--index", "9"), "there is no device 9"),
        (("start", "--user", "bob", "--host", "sim-z", "--index", "0"), "is missing"),
        (("stop", "1"), "1 is not a simulated job"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(sim, arguments, sentence):
    done = simjob(sim, *arguments)

    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_job_starts_past_a_closed_gate_with_a_warning_unless_it_respects_it(sim):
    RecordGate(sim.state_dir / "gate.json").set(sim.uuids[0], [61001], group_open=False)
    call = ("start", "--user", "bob", "--host", "sim-a", "--index", "0", "--seconds", "60")

    polite = simjob(sim, *call, "--respect-gate")
    forced = simjob(sim, *call)
    invited = simjob(sim, *call[:2], "alice", *call[3:], "--respect-gate")

    assert polite.returncode == 1
    assert "not open to bob" in polite.stderr
    assert forced.returncode == 0
    assert "warning" in forced.stderr
    assert json.loads(forced.stdout.splitlines()[-1])["pid"] > 1
    assert invited.returncode == 0
    assert invited.stderr == ""
    assert RecordGate(sim.state_dir / "gate.json").observe() == {
        sim.uuids[0]: GateState(uids=frozenset({61001}))
    }


def test_preparing_again_changes_nothing_and_leaves_jobs_alone(sim):
    pid, before = sim.job("alice"), sim.uuids

    sim.simjob("prepare", "--host", "sim-a", "--devices", "2", "--users", "alice,bob,carol")

    assert [device.uuid for device in sim.simulated.devices()] == before
    assert [job.pid for job in sim.simulated.jobs()] == [pid]


def test_a_file_whose_process_is_another_by_now_is_not_a_job(sim):
    pid = sim.job("alice")
    job = sim.simulated.jobs()[0]
    sim.simulated.register(msgspec.structs.replace(job, start_ticks=job.start_ticks - 1))
    assert sim.simulated.jobs() == []

    sim.simulated.register(msgspec.structs.replace(job, boot="another"))
    assert sim.simulated.jobs() == []

    assert is_alive(pid)
    sim.simulated.register(job)


def test_profiles_do_what_they_are_named_for():
    def at(profile, age_s):
        job = Job(pid=7, start_ticks=0, boot="", device="", unix_name="", uid=0, profile=profile)
        return load(job, age_s=age_s, memory_bytes=80 * GIB)

    training = [at("train", age_s) for age_s in range(120)]
    assert all(85 <= one.utilization_percent <= 97 for one in training)
    memory = [one.memory_bytes for one in training]
    assert memory == sorted(memory)
    assert memory[0] < memory[20] == memory[-1]
    assert at("ignore-term", 50) == at("train", 50)
    assert {at("idle", age_s).utilization_percent for age_s in range(60)} == {0}
    assert at("idle", 1).memory_bytes == 40 * GIB
    bursts = {at("notebook", age_s).utilization_percent > 0 for age_s in range(0, 300, 15)}
    assert bursts == {True, False}


def test_a_device_warms_up_under_load_and_cools_down_after_it(sim):
    hands = Hands()
    hands.boottime_s = 10_000_000
    vendor = SimulatedVendor(sim.simulated, hands.clock())
    idle = vendor.sample(sim.uuids[0])
    pid = sim.job("alice")

    hands.pass_time(10)
    begun = vendor.sample(sim.uuids[0])
    hands.pass_time(300)
    hot = vendor.sample(sim.uuids[0])
    simjob(sim, "stop", str(pid))
    hands.pass_time(10)
    cooling = vendor.sample(sim.uuids[0])

    assert idle.temperature_c < begun.temperature_c < hot.temperature_c
    assert idle.temperature_c < cooling.temperature_c < hot.temperature_c
    assert idle.power_w < hot.power_w <= hot.power_limit_w
    assert cooling.power_w == idle.power_w


def test_the_management_command_passes_arguments_output_and_failure_through(sim):
    def manage(person):
        return subprocess.run(
            [
                sys.executable, "manage.py", "simjob", "start", "--user", person,
                "--host", "sim-a", "--index", "0", "--seconds", "60",
            ],
            cwd=ROOT,
            env={**os.environ, "BERTH_DATA": str(sim.data)},
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip

    started, refused = manage("bob"), manage("mallory")

    pid = json.loads(started.stdout.splitlines()[-1])["pid"]
    assert [job.pid for job in sim.simulated.jobs()] == [pid]
    assert refused.returncode == 1
    assert "knows nobody named 'mallory'" in refused.stderr
