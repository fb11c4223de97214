"""What the doctor says, to the letter. Configuration, plan, clock, and who else hands out GPUs."""

import pytest

from tests.host.fake_machine import finding
from workers.host.doctor import report

# Nodes of root's can be made by root alone.
pytestmark = pytest.mark.root


def test_plain_http_and_a_missing_token_are_errors(machine):
    plain = machine.complaints(BERTH_URL="http://berth.example")
    without = machine.complaints(BERTH_HOST_TOKEN="")

    fix = "edit /etc/berth/host.env; the variables are listed in docs/operations.md"
    assert plain == [
        finding(
            "configuration",
            "error",
            "The worker cannot start: BERTH_URL=http://berth.example: plain http is accepted on "
            "loopback only; use https.",
            fix,
        )
    ]
    assert without == [
        finding(
            "configuration",
            "error",
            "The worker cannot start: BERTH_HOST_TOKEN is not set; `manage.py add_host NAME` prints "
            "one.",
            fix,
        )
    ]


def test_plain_http_on_loopback_is_told(machine):
    findings = machine.examine(BERTH_URL="http://127.0.0.1:8000")

    (told,) = (one for one in findings if one.id == "url")
    assert told == finding(
        "url", "ok", "Berth is asked at http://127.0.0.1:8000, on this machine, unencrypted."
    )


def test_a_token_that_others_can_read_is_an_error(machine):
    path = machine.root / "etc/berth/host.env"
    path.chmod(0o644)

    assert machine.complaints() == [
        finding(
            "token",
            "error",
            f"{path} holds the host's token and has mode 0644, owner 0: whoever reads it can speak "
            "for this host.",
            f"chown root: {path}",
            f"chmod 0600 {path}",
        )
    ]


def test_a_token_file_is_looked_at_too(machine):
    path = machine.write("etc/berth/token", "secret")
    path.chmod(0o640)

    (complaint,) = machine.complaints(BERTH_HOST_TOKEN_FILE=str(path))

    assert (complaint.id, complaint.fix[1]) == ("token", f"chmod 0600 {path}")


def test_an_old_plan_is_told_with_its_age(machine):
    machine.plan(age_s=3 * 3600)

    assert machine.complaints() == [
        finding(
            "plan",
            "warning",
            "The stored plan was last confirmed 3 h ago, not within the last minute: the agent does "
            "not run, or does not reach Berth.",
            "berth-host status",
            "journalctl -u berth-host -n 50",
        )
    ]


def test_a_damaged_plan_is_told_and_left_where_it_is(machine):
    path = machine.write("var/lib/berth/plan.json", "0000\n{}\n")

    complaints = machine.complaints()

    assert complaints[0] == finding(
        "plan",
        "error",
        "The stored plan cannot be used: plan.json: the checksum does not match. The agent sets it aside and "
        "stops nobody until it has fetched another.",
    )
    assert path.read_text() == "0000\n{}\n"


def test_a_host_that_never_heard_from_berth_has_no_plan_and_an_unknown_clock(machine):
    machine.remove("var/lib/berth/plan.json")

    assert machine.complaints() == [
        finding(
            "plan",
            "warning",
            "There is no stored plan yet: the agent has not heard from Berth.",
            "systemctl start berth-host",
            "journalctl -u berth-host -n 50",
        ),
        finding(
            "clock",
            "unknown",
            "Whether the clock is right is not known: Berth was not heard since the last boot.",
        ),
    ]
    assert report.exit_status(machine.complaints()) == 1


@pytest.mark.parametrize(("skew_s", "words"), [(95, "95.0 s ahead of"), (-7.5, "7.5 s behind")])
def test_a_clock_that_is_off_is_told_by_how_much(machine, skew_s, words):
    machine.plan(skew_s=skew_s)

    assert machine.complaints() == [
        finding(
            "clock",
            "warning",
            f"The clock is {words} the server's. Slots keep to the server's time; people will read "
            "another one here.",
            "timedatectl set-ntp true",
        )
    ]


@pytest.mark.parametrize(
    "content",
    ["Name=gpu Type=a100 File=/dev/nvidia[0-7]\n", "NodeName=g1 Name=gpu\n", "AutoDetect=nvml\n"],
)
def test_slurm_that_hands_out_gpus_is_told(machine, content):
    machine.write("etc/slurm/gres.conf", f"# generic resources\n{content}")

    assert machine.complaints() == [
        finding(
            "slurm",
            "warning",
            "Slurm hands out GPUs of this host (/etc/slurm/gres.conf). Those that it has must not "
            "be managed by Berth too.",
            "set `managed by` of those devices to Slurm under /admin/",
        )
    ]


def test_slurm_without_gpus_is_no_matter(machine):
    machine.write("etc/slurm/gres.conf", "# Name=gpu\nName=fpga File=/dev/fpga0\n")

    assert machine.complaints() == []


def test_a_device_plugin_of_kubernetes_is_told(machine):
    machine.write("var/lib/kubelet/device-plugins/nvidia-gpu.sock", "")

    assert machine.complaints() == [
        finding(
            "kubernetes",
            "warning",
            "Kubernetes hands out GPUs of this host (nvidia-gpu.sock). Those that it has must not "
            "be managed by Berth too.",
            "set `managed by` of those devices to Kubernetes under /admin/",
        )
    ]
