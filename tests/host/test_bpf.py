"""The kernel's leases: who may open a device, until when, and that nobody of ours has to be alive for it.

EACCES: the list refuses. EPERM: the kernel's program refuses. ENXIO: both let in.
"""

import errno
import os
import signal
import stat
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reservations.core.enforcement import GateState
from reservations.core.leases import NEVER
from tests.host.gates import (
    ACCESS_GROUP,
    ALICE,
    BOB,
    GPU,
    acl_gate,
    bpf_gate,
    control_group,
    make_node,
    opening,
)
from tests.host.people import as_person, child, wait_for_ever
from tests.waiting import until
from workers.host.gates import bpf_calls
from workers.host.gates.bpf import BpfGate
from workers.host.gates.lease_program import ANYBODY, FOR_EVER
from workers.host.gates.lease_table import NAME, LeaseTable, Unavailable, control_groups

pytestmark = pytest.mark.bpf
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
MOMENT = timedelta(seconds=0.2)


@pytest.fixture
def slices() -> Iterator[tuple[str, str]]:
    """A slice that is held, and one beside it that is not."""
    with control_group("user.slice", "other.slice") as group:
        yield group, str(Path(group).with_name("other.slice"))


@pytest.fixture
def group(slices: tuple[str, str]) -> str:
    return slices[0]


@pytest.fixture
def node(place: Path) -> str:
    return make_node(place / "nvidia0")


@pytest.fixture
def gate(node: str, place: Path, group: str) -> BpfGate:
    return bpf_gate({GPU: [node]}, place, [group])


def lend(gate: BpfGate, length: timedelta, *uids: int) -> None:
    gate.lend({(GPU, uid): NOW + length for uid in uids}, NOW)
    gate.set(GPU, uids, group_open=False)


def seen(gate: BpfGate) -> GateState:
    state = gate.observe()[GPU]
    assert state is not None
    return state


def test_the_one_with_a_lease_is_let_in_and_others_are_refused(
    node: str, gate: BpfGate, group: str
) -> None:
    lend(gate, HOUR, ALICE)

    assert opening(node, ALICE, inside=group) == errno.ENXIO
    # The list is asked first, then the kernel's program.
    assert opening(node, BOB, inside=group) == errno.EACCES


def test_a_mode_that_somebody_opened_does_not_let_others_in(
    node: str, gate: BpfGate, group: str
) -> None:
    lend(gate, HOUR, ALICE)

    os.chmod(node, 0o666)

    assert opening(node, BOB, inside=group) == errno.EPERM
    assert opening(node, ALICE, inside=group) == errno.ENXIO


def test_another_node_of_the_same_number_is_no_way_around(
    place: Path, gate: BpfGate, group: str
) -> None:
    lend(gate, HOUR, ALICE)

    other = make_node(place / "elsewhere", mode=0o666)

    assert opening(other, BOB, inside=group) == errno.EPERM


def test_nodes_of_other_numbers_are_left_alone(place: Path, gate: BpfGate, group: str) -> None:
    lend(gate, HOUR, ALICE)

    assert (
        opening(make_node(place / "nvidia1", minor=1, mode=0o666), BOB, inside=group) == errno.ENXIO
    )
    assert opening("/dev/null", BOB, inside=group) == 0


def test_a_block_device_of_the_same_number_is_another_device(
    place: Path, gate: BpfGate, group: str
) -> None:
    lend(gate, HOUR, ALICE)
    path = place / "block"
    os.mknod(path, stat.S_IFBLK | 0o666, os.makedev(195, 0))
    os.chmod(path, 0o666)

    assert opening(str(path), BOB, inside=group) == errno.ENXIO


def test_reading_alone_is_opening_it_too(node: str, gate: BpfGate, group: str) -> None:
    lend(gate, HOUR, ALICE)
    os.chmod(node, 0o666)

    assert opening(node, BOB, inside=group, how=os.O_RDONLY) == errno.EPERM


def test_making_a_node_is_not_opening_it(place: Path, gate: BpfGate, group: str) -> None:
    """The driver's setuid helper makes nodes in the name of any user."""
    lend(gate, HOUR, ALICE)
    made = place / "made"

    def helper() -> None:
        Path(group, "cgroup.procs").write_text(str(os.getpid()))
        os.setreuid(BOB, 0)
        os.mknod(made, stat.S_IFCHR | 0o660, os.makedev(195, 0))

    as_person(0, helper)

    assert made.exists()


def test_root_is_let_in(node: str, gate: BpfGate, group: str) -> None:
    lend(gate, HOUR, ALICE)

    assert opening(node, 0, inside=group) == errno.ENXIO


def test_processes_outside_the_slice_have_the_list_alone(
    node: str, gate: BpfGate, slices: tuple[str, str]
) -> None:
    lend(gate, HOUR, ALICE)
    os.chmod(node, 0o666)

    assert opening(node, BOB, inside=slices[1]) == errno.ENXIO


def test_a_slice_below_is_held_too(node: str, gate: BpfGate, group: str) -> None:
    lend(gate, HOUR, ALICE)
    os.chmod(node, 0o666)
    below = f"{group}/user-{BOB}.slice"
    os.mkdir(below)
    try:
        assert opening(node, BOB, inside=below) == errno.EPERM
    finally:
        os.rmdir(below)


def test_a_lease_runs_out_by_itself(node: str, gate: BpfGate, group: str) -> None:
    lend(gate, MOMENT, ALICE)
    assert opening(node, ALICE, inside=group) == errno.ENXIO

    until(lambda: opening(node, ALICE, inside=group) == errno.EPERM, limit_s=2)

    # The list still has her: it is the agent's to close, and to tell of.
    assert seen(gate) == GateState(uids=frozenset({ALICE}))


def test_a_lease_runs_out_though_the_agent_was_killed(node: str, place: Path, group: str) -> None:
    length = timedelta(seconds=1)

    def agent(ready: Callable[[], None]) -> None:
        lend(bpf_gate({GPU: [node]}, place, [group]), length, ALICE)
        ready()
        wait_for_ever()

    with child(0, agent) as killed:
        began = time.monotonic()
        assert opening(node, ALICE, inside=group) == errno.ENXIO
        os.kill(killed.pid, signal.SIGKILL)
        assert killed.reap() == signal.SIGKILL

    until(lambda: opening(node, ALICE, inside=group) == errno.EPERM, limit_s=3)
    assert 0.5 < time.monotonic() - began < 2
    assert opening(node, BOB, inside=group) == errno.EACCES


def test_an_extension_moves_the_end(node: str, gate: BpfGate, group: str) -> None:
    lend(gate, MOMENT, ALICE)
    gate.lend({(GPU, ALICE): NOW + HOUR}, NOW)
    ends = time.monotonic() + 2 * MOMENT.total_seconds()

    until(lambda: time.monotonic() > ends)

    assert opening(node, ALICE, inside=group) == errno.ENXIO


def test_an_extension_that_comes_late_opens_again(node: str, gate: BpfGate, group: str) -> None:
    lend(gate, timedelta(0), ALICE)
    assert opening(node, ALICE, inside=group) == errno.EPERM

    gate.lend({(GPU, ALICE): NOW + HOUR}, NOW)

    assert opening(node, ALICE, inside=group) == errno.ENXIO


def test_an_end_that_comes_nearer_moves_too(node: str, gate: BpfGate, group: str) -> None:
    lend(gate, HOUR, ALICE)

    gate.lend({(GPU, ALICE): NOW}, NOW)

    assert opening(node, ALICE, inside=group) == errno.EPERM


def test_a_lease_of_which_nothing_is_said_any_more_keeps_its_end(
    node: str, gate: BpfGate, group: str
) -> None:
    lend(gate, timedelta(0), ALICE)

    gate.lend({}, NOW)

    assert opening(node, ALICE, inside=group) == errno.EPERM


def test_who_is_let_in_without_a_lease_has_no_end(gate: BpfGate, group: str, node: str) -> None:
    gate.set(GPU, [BOB], group_open=False)
    gate.lend({(GPU, ALICE): NOW + HOUR}, NOW)

    assert set(LeaseTable([group]).read().values()) == {0, FOR_EVER}
    assert opening(node, BOB, inside=group) == errno.ENXIO


def test_a_lease_without_an_end_does_not_overflow(gate: BpfGate, group: str) -> None:
    gate.lend({(GPU, ALICE): NEVER}, NOW)
    gate.set(GPU, [ALICE], group_open=False)

    assert LeaseTable([group]).read()[ALICE, os.makedev(195, 0)] == FOR_EVER


def test_open_to_the_group_is_for_the_list_to_say(node: str, gate: BpfGate, group: str) -> None:
    gate.set(GPU, [], group_open=True)

    assert opening(node, ALICE, ACCESS_GROUP, inside=group) == errno.ENXIO
    assert opening(node, BOB, inside=group) == errno.EACCES

    gate.set(GPU, [], group_open=False)
    os.chmod(node, 0o666)
    assert opening(node, BOB, inside=group) == errno.EPERM


def test_two_hundred_grants_are_one_program(place: Path, group: str) -> None:
    people = range(62000, 62200)
    node = make_node(place / "nvidia0")
    gate = bpf_gate({GPU: [node]}, place, [group])

    for count in range(1, len(people) + 1):
        lend(gate, HOUR, *people[:count])

    assert len(bpf_calls.attached(group)) == 1
    assert seen(gate) == GateState(uids=frozenset(people))
    assert opening(node, people[-1], inside=group) == errno.ENXIO


def test_a_hundred_restarts_are_one_program_and_one_table(
    node: str, place: Path, group: str
) -> None:
    lend(bpf_gate({GPU: [node]}, place, [group]), HOUR, ALICE)
    before = bpf_calls.attached(group)
    table = LeaseTable([group]).read()

    for _ in range(100):
        again = bpf_gate({GPU: [node]}, place, [group])
        assert seen(again) == GateState(uids=frozenset({ALICE}))

    assert bpf_calls.attached(group) == before
    assert LeaseTable([group]).read() == table


def test_a_restart_loses_no_lease_and_lengthens_none(node: str, place: Path, group: str) -> None:
    lend(bpf_gate({GPU: [node]}, place, [group]), timedelta(0), ALICE)

    bpf_gate({GPU: [node]}, place, [group])

    assert opening(node, ALICE, inside=group) == errno.EPERM


def test_lists_that_an_agent_without_leases_set_count_at_once(
    node: str, place: Path, group: str
) -> None:
    acl_gate({GPU: [node]}, place).set(GPU, [ALICE], group_open=False)

    gate = bpf_gate({GPU: [node]}, place, [group])

    assert seen(gate) == GateState(uids=frozenset({ALICE}))
    gate.lend({(GPU, ALICE): NOW}, NOW)
    assert opening(node, ALICE, inside=group) == errno.EPERM


def test_nothing_is_attached_before_a_device_is_gated(gate: BpfGate, group: str) -> None:
    gate.observe()
    gate.lend({(GPU, ALICE): NOW + HOUR}, NOW)

    assert bpf_calls.attached(group) == ()


def test_restoring_the_last_device_takes_the_program_off(place: Path, group: str) -> None:
    nodes = {name: [make_node(place / name, minor=minor)] for minor, name in enumerate(("a", "b"))}
    gate = bpf_gate(nodes, place, [group])
    gate.set("a", [ALICE], group_open=False)
    gate.set("b", [ALICE], group_open=False)

    gate.restore("a")
    assert len(bpf_calls.attached(group)) == 1
    assert opening(nodes["a"][0], BOB, ACCESS_GROUP, inside=group) == errno.ENXIO

    gate.restore("b")
    assert bpf_calls.attached(group) == ()
    assert LeaseTable([group]).read() == {}


def test_a_program_that_somebody_took_off_is_missed_and_put_back(
    node: str, gate: BpfGate, group: str
) -> None:
    lend(gate, HOUR, ALICE)
    (identity,) = bpf_calls.attached(group)
    bpf_calls.detach(bpf_calls.program_of(identity), group)

    assert not seen(gate).sound
    gate.set(GPU, [ALICE], group_open=False)

    assert seen(gate).sound
    assert bpf_calls.attached(group) == (identity,)


def test_a_slice_that_comes_later_is_held_from_the_next_look_on(
    node: str, place: Path, slices: tuple[str, str]
) -> None:
    later = str(Path(slices[0]).with_name("jobs.slice"))
    gate = bpf_gate({GPU: [node]}, place, [slices[0], later])
    lend(gate, HOUR, ALICE)
    os.mkdir(later)
    try:
        # Nobody has taken the program off.
        assert seen(gate).sound
        gate.lend({(GPU, ALICE): NOW + HOUR}, NOW)
        os.chmod(node, 0o666)

        assert opening(node, BOB, inside=later) == errno.EPERM
    finally:
        os.rmdir(later)


def test_a_slice_that_is_not_configured_any_more_is_let_go(
    node: str, place: Path, slices: tuple[str, str]
) -> None:
    user, other = slices
    lend(bpf_gate({GPU: [node]}, place, [user]), HOUR, ALICE)

    gate = bpf_gate({GPU: [node]}, place, [other])
    lend(gate, HOUR, ALICE)

    assert bpf_calls.attached(user) == ()
    assert len(bpf_calls.attached(other)) == 1


def test_two_slices_share_one_program(node: str, place: Path, slices: tuple[str, str]) -> None:
    lend(bpf_gate({GPU: [node]}, place, slices), HOUR, ALICE)
    bpf_gate({GPU: [node]}, place, slices)

    assert bpf_calls.attached(slices[0]) == bpf_calls.attached(slices[1])
    assert len(bpf_calls.attached(slices[0])) == 1


def test_the_programs_of_others_stay_where_they_are(node: str, place: Path, group: str) -> None:
    """systemd has one for each unit with a device policy."""
    yes = b"\xb7\0\0\0\1\0\0\0\x95\0\0\0\0\0\0\0"
    bpf_calls.attach(bpf_calls.load_device_program(yes, name="sd_devices"), group)
    gate = bpf_gate({GPU: [node]}, place, [group])
    lend(gate, HOUR, ALICE)
    assert len(bpf_calls.attached(group)) == 2

    gate.restore(GPU)

    (left,) = bpf_calls.attached(group)
    assert bpf_calls.describe(bpf_calls.program_of(left))[1] == "sd_devices"


def test_numbers_that_belong_to_no_device_any_more_are_let_go(
    node: str, place: Path, group: str
) -> None:
    gate = bpf_gate({GPU: [node]}, place, [group])
    lend(gate, HOUR, ALICE)

    bpf_gate({"GPU-b": [make_node(place / "nvidia1", minor=1)]}, place, [group])

    os.chmod(node, 0o666)
    assert opening(node, BOB, inside=group) == errno.ENXIO


def test_without_the_slice_there_are_no_leases(place: Path) -> None:
    with pytest.raises(Unavailable, match="there is no control group"):
        LeaseTable([str(place / "user.slice")])


def test_a_folder_that_is_no_control_group_is_refused(place: Path) -> None:
    with pytest.raises(Unavailable, match="refuses"):
        LeaseTable([str(place)])


def test_control_groups_lie_below_where_version_2_is_mounted(place: Path) -> None:
    mounts = place / "mounts"
    mounts.write_text("proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n")
    assert control_groups(["user.slice"], mounts=mounts) == ["/sys/fs/cgroup/user.slice"]

    mounts.write_text("cgroup /sys/fs/cgroup/devices cgroup rw 0 0\n")
    with pytest.raises(Unavailable, match="version 2"):
        control_groups(["user.slice"], mounts=mounts)


def test_the_program_has_a_name_by_which_it_is_found(gate: BpfGate, group: str) -> None:
    lend(gate, HOUR, ALICE)

    (identity,) = bpf_calls.attached(group)
    _, name, table = bpf_calls.describe(bpf_calls.program_of(identity))
    assert name == NAME
    assert table is not None
    assert (ANYBODY, os.makedev(195, 0)) in LeaseTable([group]).read()
