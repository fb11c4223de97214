"""Divided GPUs (MIG): their parts, the nodes that lead to them, and what cannot be known of them."""

import errno

import pytest

from tests.host.gates import ACCESS_GROUP, ALICE, BOB, acl_gate, make_node, opening
from tests.nvml.stage import A, B
from tests.nvml.stand_in import gpu, mig
from workers.host.fleet import Fleet

CAPABILITIES_MAJOR = 240
FIRST, SECOND, THIRD = "MIG-first", "MIG-second", "MIG-third"
MINORS = """config 1
monitor 2
gpu3/gi1/access 30
gpu3/gi1/ci0/access 31
gpu3/gi2/access 39
gpu3/gi2/ci0/access 40
gpu3/gi2/ci1/access 41
gpu1/gi1/access 165
gpu1/gi1/ci0/access 166
"""
pytestmark = pytest.mark.compiler


@pytest.fixture
def divided(nvml):
    """A of minor 3 has parts in slots 0 and 2; B is whole."""
    numbers = nvml.proc / "driver/nvidia-caps/mig-minors"
    numbers.parent.mkdir(parents=True)
    numbers.write_text(MINORS)
    nvml.say(
        gpu(A, minor=3, mig=1),
        mig(0, FIRST, gi=1, ci=0, used=2**30),
        "proc 500 1048576",
        mig(2, SECOND, gi=2, ci=0),
        gpu(B, minor=1),
    )
    return nvml


def found(stage):
    return {one.uuid: one for one in stage.vendor.devices()}


def nodes(stage, *numbers):
    return tuple(str(stage.dev / f"nvidia-caps/nvidia-cap{number}") for number in numbers)


def test_parts_are_devices_of_their_own_below_their_gpu_though_slots_have_holes(divided):
    devices = found(divided)

    assert list(devices) == [A, B, FIRST, SECOND]
    part = devices[SECOND]
    assert (part.kind, part.parent, part.memory_bytes) == ("mig", A, 10 * 2**30)
    assert part.model == "A100 MIG 1g.10gb"
    assert part.bus_id == devices[A].bus_id
    assert [devices[uuid].index for uuid in (FIRST, SECOND)] == [100, 102]


def test_a_part_is_never_of_the_model_of_a_whole_gpu(divided):
    divided.say(gpu(A, mig=1), mig(0, FIRST, name="A100"), gpu(B))

    devices = found(divided)

    assert (devices[FIRST].model, devices[B].model) == ("A100 MIG", "A100")


def test_a_part_is_gated_by_both_its_instances_and_a_divided_gpu_not_at_all(divided):
    devices = found(divided)

    assert devices[FIRST].node_paths == nodes(divided, 30, 31)
    assert devices[SECOND].node_paths == nodes(divided, 39, 40)
    assert devices[FIRST].minor is None
    assert (devices[A].divided, devices[B].divided) == (True, False)


def test_two_parts_in_one_gpu_instance_are_told_apart_by_their_own_nodes_alone(divided):
    divided.say(gpu(A, minor=3, mig=1), mig(0, SECOND, gi=2, ci=0), mig(1, THIRD, gi=2, ci=1))

    devices = found(divided)

    assert devices[SECOND].node_paths == nodes(divided, 40)
    assert devices[THIRD].node_paths == nodes(divided, 41)


def test_a_part_whose_nodes_are_not_numbered_has_none_and_is_listed(divided):
    divided.say(gpu(A, minor=3, mig=1), mig(0, FIRST, gi=9, ci=0))

    assert found(divided)[FIRST].node_paths == ()


def test_who_is_on_a_part_is_listed_there_and_on_no_other(divided):
    divided.vendor.devices()

    first, second, whole = (divided.vendor.sample(uuid) for uuid in (FIRST, SECOND, A))

    assert [one.pid for one in first.processes] == [500]
    assert first.memory_used_bytes == 2**30
    assert second.processes == ()
    assert whole.processes is None
    assert whole.health == "ok"


def test_how_busy_a_part_is_is_unknown_and_never_nothing(divided):
    for ask_first in (False, True):
        if ask_first:
            divided.vendor.devices()
        for uuid in (FIRST, A):
            assert divided.vendor.sample(uuid).utilization_percent is None


def test_temperature_and_power_are_the_whole_gpus(divided):
    divided.vendor.devices()

    assert divided.vendor.sample(A).power_w == 62
    part = divided.vendor.sample(FIRST)
    assert (part.power_w, part.temperature_c, part.health) == (None, None, "ok")


def test_a_part_that_vanishes_is_lost_and_its_gpu_takes_nobody_in(divided, tmp_path):
    fleet = Fleet(divided.vendor, divided.clock, tmp_path / "inventory.json")
    fleet.refresh()
    divided.say(gpu(A, minor=3, mig=1), mig(2, SECOND, gi=2, ci=0), gpu(B, minor=1))

    assert fleet.refresh()

    assert divided.vendor.sample(FIRST).health == "lost"
    assert divided.vendor.sample(SECOND).health == "ok"
    devices = {one.uuid: one for one in fleet.devices}
    assert devices[FIRST].parent == A
    assert devices[A].divided


def test_a_gpu_that_is_whole_again_is_gated_by_its_own_node(divided):
    divided.vendor.devices()
    divided.say(gpu(A, minor=3, mig=0), "proc 9 9", gpu(B, minor=1))

    assert not found(divided)[A].divided
    assert [one.pid for one in divided.vendor.sample(A).processes] == [9]


def test_a_part_that_cannot_be_read_hides_no_other(divided):
    divided.say(
        gpu(A, minor=3, mig=1),
        mig(0, FIRST, gi=1, ci=0),
        "error * 15",
        mig(2, SECOND, gi=2, ci=0),
        gpu(B, minor=1),
    )

    assert list(found(divided)) == [A, B, SECOND]


@pytest.mark.root
def test_the_gate_of_a_part_lets_in_its_holder_and_nobody_of_the_next_part(divided, tmp_path):
    folder = divided.dev / "nvidia-caps"
    folder.mkdir(parents=True)
    for number in (30, 31, 39, 40):
        # The kernel gives capabilities a major of their own.
        make_node(folder / f"nvidia-cap{number}", minor=number, major=CAPABILITIES_MAJOR)
    devices = found(divided)
    gate = acl_gate({uuid: devices[uuid].node_paths for uuid in (FIRST, SECOND)}, tmp_path)

    gate.set(FIRST, [ALICE], group_open=False)
    gate.set(SECOND, [BOB], group_open=False)

    state = gate.observe()
    assert (state[FIRST].uids, state[SECOND].uids) == ({ALICE}, {BOB})
    for uuid, person, other in ((FIRST, ALICE, BOB), (SECOND, BOB, ALICE)):
        for path in devices[uuid].node_paths:
            assert opening(path, person, ACCESS_GROUP) == errno.ENXIO
            assert opening(path, other, ACCESS_GROUP) == errno.EACCES
