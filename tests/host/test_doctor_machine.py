"""What the doctor says, to the letter. Kernel, Python, rights and gates."""

import errno
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.fake_machine import FakeMachine, finding
from tests.host.gates import control_group
from workers.host.doctor import report
from workers.host.gates.bpf_calls import attached

# Nodes of root's can be made by root alone.
pytestmark = pytest.mark.root


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
            "CapabilityBoundingSet=CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_KILL "
            "CAP_SYS_PTRACE",
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


def test_leases_that_the_kernel_cannot_keep_are_said_to_be_missing(machine):
    assert machine.complaints(BERTH_GATE="bpf") == [
        finding(
            "gate",
            "warning",
            "Gates that work here: acl and record. The chosen one, bpf, does not, so no lease ends in "
            "the kernel: control groups of version 2 are not mounted.",
        )
    ]


@pytest.mark.bpf
def test_the_kernel_is_asked_whether_it_keeps_leases_and_is_left_as_it_was(machine):
    machine.write("proc/self/mounts", Path("/proc/self/mounts").read_text())
    with control_group("user.slice") as group:
        findings = machine.examine(BERTH_GATE="bpf", BERTH_SLICES=group)

        assert [one.text for one in findings if one.id == "gate"] == [
            "Gates that work here: acl, bpf and record; chosen: bpf."
        ]
        assert attached(group) == ()


def test_the_gate_bpf_needs_one_capability_more(machine):
    machine.change("proc/self/status", "000001ffffffffff", f"{0x1FFFFFFFFFF & ~(1 << 21):x}")

    assert machine.complaints() == []
    (complaint, _) = machine.complaints(BERTH_GATE="bpf")
    assert complaint.text.startswith("Root lacks CAP_SYS_ADMIN here")
    assert complaint.fix[0].endswith(" CAP_SYS_ADMIN")


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
