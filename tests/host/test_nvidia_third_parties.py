"""gpustat and nvitop over the same stand-in: what it says they understand, and as we do.

Both come with struct layouts, fallbacks and error handling of their own, so a fault of the stand-in, or a
reading of ours that nobody else shares, shows here.
"""

import json
import os
import sys

import pytest

from tests.nvml import stand_in
from tests.nvml.stage import A, B
from tests.nvml.stand_in import gpu, mig

pytestmark = pytest.mark.compiler
MIB = 2**20
GPUSTAT = [sys.executable, "-m", "gpustat", "--json"]
NVITOP = [sys.executable, "-m", "tests.nvml.nvitop_reading"]


@pytest.fixture
def busy(nvml):
    """A computes for this very process and its parent: both tools drop pids that do not exist."""
    nvml.say(
        gpu(A, minor=3, util=93, used=5 * 1024 * MIB, power=250_000, temp=61, clock=1410),
        f"proc {os.getpid()} {3 * 1024 * MIB}",
        f"proc {os.getppid()} {512 * MIB} graphics",
        gpu(B, minor=1, fan=30),
    )
    return nvml


def by_gpustat(stage, library=None):
    rows = json.loads(stage.run(GPUSTAT, library))["gpus"]
    # A row of a lost device has no UUID.
    return {one["uuid"]: one for one in rows if "uuid" in one}


def by_nvitop(stage, library=None):
    return {one["uuid"]: one for one in json.loads(stage.run(NVITOP, library))}


def sizes(sample):
    return {one.pid: one.memory_bytes for one in sample.processes}


def test_gpustat_reads_what_we_read(busy):
    theirs = by_gpustat(busy)

    assert list(theirs) == [A, B]
    for uuid, said in theirs.items():
        ours = busy.vendor.sample(uuid)
        assert said["utilization.gpu"] == ours.utilization_percent
        assert said["temperature.gpu"] == ours.temperature_c
        assert said["power.draw"] == ours.power_w
        assert said["enforced.power.limit"] == ours.power_limit_w
        assert said["fan.speed"] == ours.fan_percent
        assert said["memory.used"] * MIB == ours.memory_used_bytes
        assert said["memory.total"] * MIB == ours.memory_total_bytes
        listed = {one["pid"]: one["gpu_memory_usage"] * MIB for one in said["processes"]}
        assert listed == sizes(ours)


def test_nvitop_reads_what_we_read(busy):
    theirs = by_nvitop(busy)

    assert list(theirs) == [A, B]
    for uuid, said in theirs.items():
        ours = busy.vendor.sample(uuid)
        assert said["utilization"] == ours.utilization_percent
        assert said["temperature"] == ours.temperature_c
        assert said["power"] == 1000 * ours.power_w
        assert said["memory_used"] == ours.memory_used_bytes
        assert said["memory_total"] == ours.memory_total_bytes
        assert {int(pid): size for pid, size in said["processes"].items()} == sizes(ours)


def test_all_three_say_the_same_of_an_old_driver(busy, tmp_path):
    library = stand_in.compile_into(tmp_path / "old", driver=470)

    (ours, _) = busy.read_with(library)["samples"]
    listed = {one["pid"]: one["memory_bytes"] for one in ours["processes"]}
    by_stat, by_top = by_gpustat(busy, library)[A], by_nvitop(busy, library)[A]

    assert {one["pid"]: one["gpu_memory_usage"] * MIB for one in by_stat["processes"]} == listed
    assert {int(pid): size for pid, size in by_top["processes"].items()} == listed
    assert by_stat["memory.used"] * MIB == by_top["memory_used"] == ours["memory_used_bytes"]


def test_nvitop_sees_the_same_parts_of_a_divided_gpu(nvml):
    pid = os.getpid()
    # No hole between them: nvitop 1.7.2 takes the first one for the end.
    nvml.say(
        gpu(A, mig=1), mig(0, "MIG-first", used=MIB), f"proc {pid} {MIB}", mig(1, "MIG-second")
    )

    theirs = by_nvitop(nvml)

    devices = {one.uuid: one for one in nvml.vendor.devices()}
    assert list(theirs) == list(devices) == [A, "MIG-first", "MIG-second"]
    for uuid in ("MIG-first", "MIG-second"):
        ours = nvml.vendor.sample(uuid)
        assert theirs[uuid]["name"] == devices[uuid].model
        assert theirs[uuid]["memory_used"] == ours.memory_used_bytes
        assert {int(pid): size for pid, size in theirs[uuid]["processes"].items()} == sizes(ours)
        assert theirs[uuid]["utilization"] == "N/A"
        assert ours.utilization_percent is None


def test_a_lost_device_is_lost_to_all_and_hides_no_other(nvml):
    nvml.say(gpu(A), "error * 15", gpu(B, util=50))

    by_stat, by_top = by_gpustat(nvml), by_nvitop(nvml)

    assert nvml.vendor.sample(A).health == "lost"
    assert nvml.vendor.sample(B).utilization_percent == 50
    assert by_stat[B]["utilization.gpu"] == by_top[B]["utilization"] == 50
    assert A not in by_stat
    assert A not in by_top
