"""What the doctor says, to the letter: on made-up machines, and on this one."""

import errno
import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.fake_machine import GPU_GID, FakeMachine
from tests.host.kit import ROOT
from workers.host import cli
from workers.host.doctor import report
from workers.host.doctor.facts import Finding

# Nodes of root's can be made by root alone.
pytestmark = pytest.mark.root

LINES = (
    f'echo "options nvidia NVreg_DeviceFileUID=0 NVreg_DeviceFileGID={GPU_GID} '
    'NVreg_DeviceFileMode=0660" > /etc/modprobe.d/berth.conf',
    "update-initramfs -u   # Debian, Ubuntu; dracut -f on Fedora, RHEL, SUSE",
    "reboot",
)
PARAMETERS = "proc/driver/nvidia/params"


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


def finding(id_: str, level: str, text: str, *fix: str) -> Finding:
    return Finding(id=id_, level=level, text=text, fix=fix)


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
        ("hidepid", "/proc shows every process."),
        ("library", "NVIDIA's library loads."),
        ("driver", "NVIDIA's driver is loaded."),
        (
            "parameters",
            "The driver keeps its nodes at 0660, owner root, group 990: closed stays closed.",
        ),
        ("nodes", "2 device nodes are root's, with mode 0660."),
        ("access_group", "The access group is gpu: alice."),
        ("display", "No display is seen on a GPU of this host."),
        ("shared_uid", "Every account has a uid of its own."),
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


def test_stock_driver_parameters_let_anybody_open_a_closed_node(machine):
    machine.change(PARAMETERS, "DeviceFileMode: 432", "DeviceFileMode: 438")

    assert machine.complaints() == [
        finding(
            "parameters.mode",
            "error",
            "The driver has NVreg_DeviceFileMode=0666: any user can have a closed node put back to "
            "that, through nvidia-modprobe. It has to be 0660.",
            *LINES,
        )
    ]


def test_a_decimal_660_is_named_as_what_it_is(machine):
    machine.change(PARAMETERS, "DeviceFileMode: 432", "DeviceFileMode: 660")

    assert machine.complaints() == [
        finding(
            "parameters.mode",
            "error",
            "The driver has NVreg_DeviceFileMode=660, a decimal number, which is the mode "
            "c-w--w-r-T. It has to be octal, with a leading zero: 0660.",
            *LINES,
        )
    ]


def test_group_0_closes_the_control_node_to_everybody(machine):
    machine.change(PARAMETERS, f"DeviceFileGID: {GPU_GID}", "DeviceFileGID: 0")

    assert machine.complaints() == [
        finding(
            "parameters.group",
            "error",
            "The driver has NVreg_DeviceFileGID=0: with mode 0660, /dev/nvidiactl is closed to "
            "everybody but root, and nobody can use any GPU. It has to be the group of all who may "
            "use GPUs.",
            *LINES,
        )
    ]


def test_without_an_access_group_the_lines_make_one(machine):
    machine.change(PARAMETERS, f"DeviceFileGID: {GPU_GID}", "DeviceFileGID: 0")
    machine.change("etc/group", f"gpu:x:{GPU_GID}:alice\n", "")

    (complaint,) = machine.complaints()[:1]

    assert complaint.fix[:2] == (
        "groupadd --system gpu",
        'echo "options nvidia NVreg_DeviceFileUID=0 NVreg_DeviceFileGID='
        '$(getent group gpu | cut -d: -f3) NVreg_DeviceFileMode=0660" > /etc/modprobe.d/berth.conf',
    )


def test_a_driver_that_creates_no_nodes_is_an_error(machine):
    machine.change(PARAMETERS, "ModifyDeviceFiles: 1", "ModifyDeviceFiles: 0")

    assert machine.complaints() == [
        finding(
            "parameters.modify",
            "error",
            "The driver has NVreg_ModifyDeviceFiles=0: nothing creates its nodes after a boot, and "
            "no GPU can be used until somebody does.",
            *LINES,
        )
    ]


def test_an_owner_other_than_root_can_always_open_the_nodes(machine):
    machine.change(PARAMETERS, "DeviceFileUID: 0", "DeviceFileUID: 1001")
    machine.node("nvidia1", uid=1001)

    assert machine.complaints() == [
        finding(
            "parameters.owner",
            "error",
            "The driver has NVreg_DeviceFileUID=1001: that user owns every node and can always open "
            "it. It has to be 0.",
            *LINES,
        ),
        finding(
            "nodes",
            "error",
            "/dev/nvidia1 belongs to uid 1001, who can always open it.",
            "chown root /dev/nvidia1",
        ),
    ]


def test_everything_that_is_wrong_with_stock_settings_is_said_at_once(machine):
    machine.change(PARAMETERS, "DeviceFileMode: 432", "DeviceFileMode: 438")
    machine.change(PARAMETERS, f"DeviceFileGID: {GPU_GID}", "DeviceFileGID: 0")
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        machine.node(name, mode=0o666, gid=0)

    complaints = machine.complaints()

    assert [(one.id, one.level) for one in complaints] == [
        ("parameters.mode", "error"),
        ("parameters.group", "error"),
        ("nodes", "error"),
        ("nodes", "warning"),
        ("nodes", "error"),
        ("nodes", "warning"),
    ]
    assert complaints[2] == finding(
        "nodes",
        "error",
        "/dev/nvidia0 has mode 0666: it is open to everybody.",
        "chmod 0660 /dev/nvidia0",
    )
    assert complaints[3] == finding(
        "nodes",
        "warning",
        "/dev/nvidia0 belongs to group 0, not to 990, the access group.",
        "chgrp 990 /dev/nvidia0",
    )


def test_a_control_node_that_is_closed_is_an_error(machine):
    machine.node("nvidiactl", gid=0)

    assert machine.complaints() == [
        finding(
            "control_node",
            "error",
            "/dev/nvidiactl has mode 0660 and group 0: nobody but root can use any GPU.",
            *LINES,
        )
    ]


def test_an_access_group_without_members_may_be_a_mistake(machine):
    machine.change("etc/group", f"gpu:x:{GPU_GID}:alice", f"gpu:x:{GPU_GID}:")

    assert machine.complaints() == [
        finding(
            "access_group",
            "unknown",
            "The access group gpu has no members in /etc/group. If none come from a directory "
            "either, nobody can use a GPU.",
            "usermod -aG gpu NAME   # everybody who may use GPUs",
        )
    ]


def test_without_driver_and_library_both_are_missed(machine):
    machine.remove(PARAMETERS)
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        machine.remove(f"dev/{name}")
    machine.library_error = "libnvidia-ml.so.1: cannot open shared object file"

    assert machine.complaints() == [
        finding(
            "library",
            "error",
            "NVIDIA's library cannot be loaded, so no device is seen: libnvidia-ml.so.1: cannot "
            "open shared object file.",
            "apt install libnvidia-ml1   # Debian; elsewhere it comes with the driver",
        ),
        finding(
            "driver",
            "error",
            "NVIDIA's driver is not loaded: there is no /proc/driver/nvidia/params.",
            "modprobe nvidia",
        ),
    ]


def test_a_driver_without_nodes_is_an_error(machine):
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        machine.remove(f"dev/{name}")

    assert machine.complaints() == [
        finding(
            "nodes",
            "error",
            "There is no /dev/nvidia0: the driver is loaded, but nothing has created its nodes.",
            "nvidia-smi",
        )
    ]


def test_a_simulated_host_is_not_asked_for_a_driver(machine):
    machine.remove(PARAMETERS)
    machine.library_error = "not there"

    assert machine.complaints(BERTH_VENDOR="simulated", BERTH_GATE="record") == []


def test_a_display_on_an_nvidia_card_is_told_with_who_drives_it(machine):
    for card, vendor in (("card0", "0x10de"), ("card1", "0x8086")):
        machine.write(f"sys/class/drm/{card}/device/vendor", f"{vendor}\n")
        machine.write(f"sys/class/drm/{card}-HDMI-A-1/status", "connected\n")
        machine.write(f"sys/class/drm/{card}-DP-1/status", "disconnected\n")
    machine.write("proc/812/comm", "Xorg\n")
    machine.link("proc/812/fd/7", "/dev/nvidia0")
    machine.write("proc/813/comm", "Xorg\n")
    machine.link("proc/813/fd/7", "/dev/dri/card1")

    assert machine.complaints() == [
        finding(
            "display",
            "warning",
            "A display is driven by a GPU of this host (card0-HDMI-A-1, Xorg (pid 812)). Processes "
            "that only draw are never stopped, and closing that GPU keeps the next desktop from "
            "starting.",
            "leave that device out of `managed`, or give the desktop a card of its own",
        )
    ]


def test_a_pid_namespace_of_its_own_is_an_error(machine):
    machine.pid_namespace(4026532201)

    assert machine.complaints() == [
        finding(
            "pid_namespace",
            "error",
            "This runs in a pid namespace of its own, where pids mean something else than to the "
            "driver. The agent stops nobody from in here.",
            "docker run --pid=host …",
            "hostPID: true",
        )
    ]


@pytest.mark.parametrize("release", ["5.2.21", "4.18.0-553.el8.x86_64", "3.10.0"])
def test_an_old_kernel_is_an_error(machine, release):
    machine.write("proc/sys/kernel/osrelease", f"{release}\n")

    assert machine.complaints() == [
        finding(
            "kernel",
            "error",
            f"Kernel {release} is too old: 5.3 is the first with which a process can be signalled "
            "without the risk of reaching another one.",
        )
    ]


def test_an_old_python_is_an_error(machine):
    facts = machine.facts()
    old = replace(facts, machine=replace(facts.machine, python=(3, 9)))

    (complaint,) = (one for one in report.examine(old) if one.level != "ok")

    assert complaint.text == "Python 3.9 is too old: the agent needs 3.11."


def test_somebody_who_is_not_root_is_told_so(machine):
    machine.change("proc/self/status", "Uid:\t0\t0", "Uid:\t1001\t1001")
    machine.change("proc/self/status", "000001ffffffffff", "0000000000000000")

    assert [one.text for one in machine.complaints()] == [
        "This runs as uid 1001. The agent has to be root, to whom the nodes belong.",
        "Gates that work here: record. The chosen one, acl, does not.",
    ]


def test_missing_capabilities_are_named(machine):
    # all but CAP_KILL (5) and CAP_SYS_PTRACE (19)
    machine.change(
        "proc/self/status", "000001ffffffffff", f"{0x1FFFFFFFFFF & ~(1 << 5 | 1 << 19):x}"
    )

    assert machine.complaints() == [
        finding(
            "rights",
            "error",
            "Root lacks CAP_KILL and CAP_SYS_PTRACE here, without which devices cannot be closed or "
            "holders not found and stopped.",
            "CapabilityBoundingSet=CAP_CHOWN CAP_DAC_READ_SEARCH CAP_FOWNER CAP_KILL CAP_SYS_PTRACE",
        )
    ]


@pytest.fixture
def without_acl(machine: FakeMachine) -> Iterator[FakeMachine]:
    """ramfs keeps no ACLs."""
    folder = machine.root / "dev"
    subprocess.run(["mount", "-t", "ramfs", "none", folder], check=True)
    try:
        for name in ("nvidia0", "nvidiactl"):
            machine.node(name)
        yield machine
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_dev_without_access_control_lists_is_found_by_trying(without_acl):
    assert [(one.id, one.level, one.text) for one in without_acl.complaints()] == [
        (
            "acl",
            "error",
            "/dev takes no access control lists, so the gate `acl` cannot work: the kernel was built "
            "without them.",
        ),
        ("gate", "error", "Gates that work here: record. The chosen one, acl, does not."),
    ]


def test_access_control_lists_that_could_not_be_tried_are_unknown(machine):
    facts = machine.facts()
    facts = replace(facts, machine=replace(facts.machine, acl_errno=errno.EACCES))

    (complaint,) = (one for one in report.examine(facts) if one.id == "acl")

    assert complaint == finding(
        "acl",
        "unknown",
        "Whether /dev takes access control lists could not be tried: Permission denied.",
    )


def test_the_trial_leaves_nothing_in_dev(machine):
    before = sorted((machine.root / "dev").iterdir())

    machine.examine()

    assert sorted((machine.root / "dev").iterdir()) == before


def test_a_gate_that_closes_nothing_is_pointed_out(machine):
    assert machine.complaints(BERTH_GATE="record") == [
        finding(
            "gate",
            "warning",
            "Gates that work here: acl and record. BERTH_GATE=record closes nothing: it only "
            "remembers what it was told.",
            "BERTH_GATE=acl",
        )
    ]


def test_hidepid_is_no_hindrance_to_root_and_one_to_others(machine):
    machine.change("proc/self/mounts", "relatime", "relatime,hidepid=2")
    (told,) = (one for one in machine.examine() if one.id == "hidepid")
    machine.change("proc/self/status", "000001ffffffffff", "0000000000000000")

    (hindered,) = (one for one in machine.complaints() if one.id == "hidepid")

    assert told.text == "/proc is mounted with hidepid=2; root still sees every process."
    assert hindered.level == "error"
    assert hindered.text == (
        "/proc is mounted with hidepid=2, which hides the processes of others from an agent without "
        "CAP_SYS_PTRACE."
    )


@pytest.mark.parametrize(
    ("remove", "add", "text"),
    [
        ("cgroup.controllers", "unified/cgroup.controllers", "version 1 with an empty version 2"),
        ("cgroup.controllers", "devices/tasks", "Control groups are version 1."),
        ("cgroup.controllers", "", "There are no control groups"),
    ],
)
def test_the_kind_of_control_groups_is_told(machine, remove, add, text):
    machine.remove(f"sys/fs/cgroup/{remove}")
    if add:
        machine.write(f"sys/fs/cgroup/{add}", "")

    (told,) = (one for one in machine.examine() if one.id == "cgroups")

    assert text in told.text


def test_who_can_become_root_is_named(machine):
    machine.change(
        "etc/group", "video:x:44:", "video:x:44:dan\nsudo:x:27:eve\ndocker:x:998:bob,carl"
    )

    findings = {one.id: one for one in machine.examine()}

    assert findings["group.docker"] == finding(
        "group.docker",
        "warning",
        "Members of docker can make themselves root, whom no gate holds: bob, carl.",
        "gpasswd -d bob docker",
        "gpasswd -d carl docker",
    )
    assert findings["group.sudo"] == finding(
        "group.sudo", "ok", "Members of sudo may become root, whom no gate holds: eve."
    )
    assert findings["group.video"] == finding(
        "group.video", "ok", "Group video (dan) owns no GPU's node."
    )


def test_somebody_whose_first_group_is_docker_is_a_member_too(machine):
    machine.change("etc/group", "video:x:44:", "docker:x:998:")
    machine.change("etc/passwd", "alice:x:1001:1001", "alice:x:1001:998")

    (complaint,) = machine.complaints()

    assert complaint.text.endswith("whom no gate holds: alice.")


def test_members_of_video_are_named_where_it_owns_a_node(machine):
    machine.change("etc/group", "video:x:44:", "video:x:44:dan")
    machine.change(PARAMETERS, f"DeviceFileGID: {GPU_GID}", "DeviceFileGID: 44")
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        machine.node(name, gid=44)

    assert machine.complaints() == [
        finding(
            "group.video",
            "warning",
            "/dev/nvidia0, /dev/nvidia1 belong to group video: its members (dan) may open them "
            "whenever the agent has not closed them.",
            "gpasswd -d dan video",
        )
    ]


def test_people_who_share_a_uid_are_named(machine):
    machine.change("etc/passwd", "alice:x:1001", "lab:x:1001:1001::/:/bin/sh\nalice:x:1001")

    assert machine.complaints() == [
        finding(
            "shared_uid",
            "warning",
            "alice, lab share uid 1001: the kernel takes them for one person, and so does Berth.",
        )
    ]


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
        "The stored plan cannot be used: its checksum does not match. The agent sets it aside and "
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
