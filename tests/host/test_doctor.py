"""What the doctor says of all of a machine: made-up ones, and this one."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.host.fake_machine import LINES, PARAMETERS, FakeMachine
from tests.host.kit import ROOT
from workers.host import cli
from workers.host.doctor import report

# Nodes of root's can be made by root alone.
pytestmark = pytest.mark.root


def test_a_good_machine_hears_only_good_things(machine):
    findings = machine.examine()

    assert [(one.id, one.text) for one in findings] == [
        ("kernel", "Kernel 6.1.0-13-amd64 is new enough."),
        ("python", findings[1].text),
        ("pid_namespace", "This runs in the host's pid namespace."),
        ("rights", "This is root, with every capability that the agent needs."),
        ("acl", "/dev takes access control lists (tried)."),
        ("gate", "Gates that work here: acl and record; chosen: acl."),
        ("cgroups", "Control groups are version 2."),
        ("hidepid", "/proc shows everybody every process, with its command line."),
        ("library", "NVIDIA's library loads."),
        ("driver", "NVIDIA's driver is loaded."),
        (
            "parameters",
            "The driver keeps its nodes at 0660, owner root, group 990: closed stays closed.",
        ),
        ("persistence", "nvidia-persistenced keeps the devices ready."),
        ("nodes", "2 device nodes are root's, with mode 0660."),
        ("access_group", "The access group is gpu: alice."),
        ("display", "No display is seen on a GPU of this host."),
        ("shared_uid", "Every account has a uid of its own."),
        ("homes", "Nobody can look into the home of somebody else."),
        ("url", "Berth is asked at https://berth.example, encrypted."),
        (
            "token",
            f"The host's token is in {machine.root}/etc/berth/host.env, which only root can read.",
        ),
        ("plan", "The stored plan was confirmed 20 s ago; mode enforce."),
        ("clock", "The clock is within 2 s of the server's."),
        ("others", "Neither Slurm nor Kubernetes hands out GPUs here."),
    ]
    assert report.exit_status(findings) == 0
    assert report.in_words(findings).endswith("\n\nNothing stands in the way.")


def test_a_simulated_host_is_not_asked_for_a_driver(machine):
    machine.remove(PARAMETERS)
    machine.library_error = "not there"

    assert machine.complaints(BERTH_VENDOR="simulated", BERTH_GATE="record") == []


def test_an_empty_machine_leaves_questions_open_and_breaks_nothing(tmp_path):
    machine = FakeMachine(tmp_path / "good")
    machine.root = tmp_path / "empty"

    levels = {one.id: one.level for one in machine.examine()}

    open_questions = {id_ for id_, level in levels.items() if level == "unknown"}
    assert open_questions == {
        "kernel", "pid_namespace", "rights", "acl", "hidepid", "shared_uid", "clock",
    }  # fmt: skip


def test_words_and_json_say_the_same_and_sum_up(machine):
    machine.change(PARAMETERS, "DeviceFileMode: 432", "DeviceFileMode: 438")
    machine.plan(age_s=600)

    findings = machine.examine()
    words = report.in_words(findings)
    content = json.loads(report.in_json(findings))

    assert "\nerror    The driver has NVreg_DeviceFileMode=0666: any user" in words
    assert f"\n             {LINES[0]}\n" in words
    assert words.endswith("\n1 error, 1 warning: bookings would not hold on this host.")
    assert content["status"] == 2
    assert [one["text"] for one in content["findings"]] == [one.text for one in findings]


def test_the_doctor_of_this_machine_knows_its_real_kernel(monkeypatch, capsys):
    monkeypatch.setenv("BERTH_VENDOR", "simulated")

    status = cli.main(["doctor", "--json"])

    content = json.loads(capsys.readouterr().out)
    told = {one["id"]: one for one in content["findings"]}
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert told["kernel"]["text"] == f"Kernel {release} is new enough."
    assert told["acl"]["text"] == "/dev takes access control lists (tried)."
    assert told["rights"]["level"] == told["pid_namespace"]["level"] == "ok"
    assert status == content["status"]
    assert not list(Path("/dev").glob(".berth-doctor-*"))


def test_the_command_runs_from_anywhere_in_a_pid_namespace_of_its_own(tmp_path):
    command = ["unshare", "--pid", "--fork", "--mount-proc", f"{ROOT}/bin/berth-host", "doctor"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert "error    This runs in a pid namespace of its own, where pids mean" in done.stdout
