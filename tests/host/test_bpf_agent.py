"""The whole agent with leases in the kernel: they follow the plan, and outlive the agent."""

import errno
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from reservations.core.wire import Hold, HostSettings
from tests.host import nodes
from tests.host.control_plane import TOKEN, ControlPlaneDouble, grant, real_now
from tests.host.gates import ALICE, BOB, control_group, make_node, opening
from tests.host.kit import ROOT
from tests.host.people import Directory
from tests.waiting import until
from workers.host.agent import Agent
from workers.host.config import Config
from workers.host.gates import bpf_calls
from workers.host.gates.lease_program import ANYBODY, FOR_EVER
from workers.host.gates.lease_table import LeaseTable

pytestmark = pytest.mark.bpf
MINOR = 251


@pytest.fixture
def group() -> Iterator[str]:
    with control_group("user.slice") as made:
        yield made


@pytest.fixture
def node(place: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(
        "workers.host.agent.open_users", lambda config: Directory(alice=ALICE, bob=BOB)
    )
    (place / nodes.LISTED).write_text("[]")
    return make_node(place / nodes.NODE, minor=MINOR)


@pytest.fixture
def plane() -> Iterator[ControlPlaneDouble]:
    with ControlPlaneDouble("gpu-01") as double:
        double.settings = HostSettings(
            mode="enforce", managed=(nodes.UUID,), sample_s=1, intruder_grace_s=60
        )
        yield double


def agent_of(plane: ControlPlaneDouble, folder: Path, *slices: str) -> Agent:
    return Agent(
        Config(
            host="gpu-01",
            url=plane.url,
            token=TOKEN,
            state_dir=folder,
            vendor="tests.host.nodes:open_vendor",
            gate="bpf",
            slices=slices,
        ),
        leave=lambda code: None,
    )


@pytest.fixture
def agent(node: str, place: Path, plane: ControlPlaneDouble, group: str) -> Iterator[Agent]:
    made = agent_of(plane, place, group)
    yield made
    made.stop()


def lease_of(group: str, uid: int) -> int | None:
    return LeaseTable([group]).read().get((uid, os.makedev(195, MINOR)))


def test_an_agent_that_was_killed_in_the_slot_leaves_a_kernel_that_ends_it(
    node: str, place: Path, plane: ControlPlaneDouble, group: str
) -> None:
    plane.grants = (grant(nodes.UUID, "nobody", end_s=10),)
    nobody = pwd.getpwnam("nobody").pw_uid
    worker = subprocess.Popen(
        [sys.executable, "-m", "workers.host", "run"],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "BERTH_HOST_NAME": "gpu-01",
            "BERTH_URL": plane.url,
            "BERTH_HOST_TOKEN": TOKEN,
            "BERTH_STATE_DIR": str(place),
            "BERTH_RUN_DIR": str(place),
            "BERTH_VENDOR": "tests.host.nodes:open_vendor",
            "BERTH_GATE": "bpf",
            "BERTH_SLICES": group,
        },
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: lease_of(group, nobody))
        assert opening(node, nobody, inside=group) == errno.ENXIO
    finally:
        worker.kill()
        worker.wait(10)
    assert real_now() < plane.grants[0].end

    until(lambda: opening(node, nobody, inside=group) == errno.EPERM, limit_s=15)
    assert timedelta(0) <= real_now() - plane.grants[0].end < timedelta(seconds=2)
    # Outside the slice the list alone speaks.
    assert opening(node, nobody) == errno.ENXIO


def test_a_slot_that_ends_is_closed_by_the_agent_and_told_as_an_end_and_not_as_drift(
    node: str, plane: ControlPlaneDouble, agent: Agent, group: str
) -> None:
    plane.grants = (grant(nodes.UUID, "alice", end_s=2),)
    agent.start()

    until(lambda: plane.find("closed"))

    assert opening(node, ALICE, inside=group) == errno.EACCES
    assert "drift" not in plane.kinds()
    assert lease_of(group, ALICE) is None


def test_an_extension_moves_the_end_in_the_kernel(
    node: str, plane: ControlPlaneDouble, agent: Agent, group: str
) -> None:
    plane.grants = (grant(nodes.UUID, "alice", end_s=60),)
    agent.start()
    before = until(lambda: lease_of(group, ALICE))

    plane.grants = (grant(nodes.UUID, "alice", end_s=3600),)
    agent.nudge()

    longer = 3000 * 1_000_000_000
    until(lambda: (lease_of(group, ALICE) or 0) > before + longer)
    program = bpf_calls.attached(group)
    assert len(program) == 1


def test_a_restarted_agent_goes_on_with_the_same_program(
    node: str, place: Path, plane: ControlPlaneDouble, group: str
) -> None:
    plane.grants = (grant(nodes.UUID, "alice"),)
    first = agent_of(plane, place, group)
    first.start()
    until(lambda: lease_of(group, ALICE))
    first.stop()
    program = bpf_calls.attached(group)

    again = agent_of(plane, place, group)
    again.start()
    until(lambda: plane.kinds().count("agent_started") == 2)
    again.stop()

    assert bpf_calls.attached(group) == program
    assert opening(node, ALICE, inside=group) == errno.ENXIO
    assert plane.kinds().count("drift") == 0


@pytest.mark.parametrize("why", ["hold", "complete_until"])
def test_where_gates_stay_as_they_are_no_lease_runs_out(
    node: str, plane: ControlPlaneDouble, agent: Agent, group: str, why: str
) -> None:
    plane.grants = (grant(nodes.UUID, "alice", end_s=8),)
    agent.start()
    until(lambda: opening(node, ALICE, inside=group) == errno.ENXIO)

    if why == "hold":
        plane.settings = msgspec.structs.replace(plane.settings, hold=Hold(reason="exam"))
    else:
        plane.complete_until = real_now() + timedelta(seconds=1)
    agent.nudge()

    until(lambda: lease_of(group, ALICE) == FOR_EVER)
    until(lambda: real_now() > plane.grants[0].end)
    assert opening(node, ALICE, inside=group) == errno.ENXIO


def test_a_mode_that_gates_nothing_leaves_the_kernel_as_it_was(
    node: str, plane: ControlPlaneDouble, agent: Agent, group: str
) -> None:
    plane.grants = (grant(nodes.UUID, "alice"),)
    agent.start()
    until(lambda: lease_of(group, ALICE))

    plane.settings = msgspec.structs.replace(plane.settings, mode="observe")
    agent.nudge()

    until(lambda: bpf_calls.attached(group) == ())


def test_where_the_kernel_keeps_no_leases_the_lists_hold_and_it_is_said(
    node: str, place: Path, plane: ControlPlaneDouble, group: str
) -> None:
    plane.grants = (grant(nodes.UUID, "alice"),)
    agent = agent_of(plane, place, f"{group}/missing.slice")
    agent.start()
    try:
        problem = until(
            lambda: [one for sent in plane.samples for one in sent.health if one.code == "gate"]
        )[0]
        assert "BERTH_GATE=bpf does not work here, so acl alone is used" in problem.text
        until(lambda: plane.find("opened"))
        assert opening(node, ALICE, inside=group) == errno.ENXIO
        assert opening(node, BOB, inside=group) == errno.EACCES
    finally:
        agent.stop()


@pytest.mark.parametrize("allowed", ["+bpf,+net_admin", "+sys_admin"])
def test_an_agent_finds_its_program_again_with_the_one_capability_that_it_is_given(
    group: str, allowed: str
) -> None:
    code = (
        "import sys; from workers.host.gates.lease_table import LeaseTable; "
        "table = LeaseTable(sys.argv[1:]); table.write({(5, 1): 7}); table.attach(); "
        "print(LeaseTable(sys.argv[1:]).read())"
    )
    done = subprocess.run(
        ["setpriv", "--bounding-set", f"-all,{allowed}", "--no-new-privs",
         sys.executable, "-c", code, group],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )  # fmt: skip

    assert (done.returncode == 0) == (allowed == "+sys_admin")
    assert ANYBODY not in LeaseTable([group]).read()
