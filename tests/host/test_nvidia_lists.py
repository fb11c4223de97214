"""Who is on a device, by lists whose entries have changed without a new version."""

import subprocess

import pytest

from reservations.core.wire import DeviceInfo, ProcessUse
from tests.nvml import stand_in
from tests.nvml.stage import A, B
from tests.nvml.stand_in import gpu
from workers.host.gates.record import RecordGate
from workers.host.ghosts import ORPHANED_AFTER
from workers.host.lookout import Lookout
from workers.host.names import Names, SystemUsers
from workers.host.readings import Readings

pytestmark = pytest.mark.compiler
MIB = 2**20
# Sizes that could be taken for pids, and pids for sizes.
FOUR = {111: 100 * MIB, 222: 2 * MIB, 333: 300 * MIB, 444: 4097}


def procs(listed, kind="compute"):
    return [f"proc {pid} {used} {kind}" for pid, used in listed.items()]


def pids(sample):
    return None if sample.processes is None else [one.pid for one in sample.processes]


@pytest.fixture(scope="session")
def older(nvml_library, tmp_path_factory):
    """Libraries of older drivers, by their age."""
    folder = tmp_path_factory.mktemp("older")
    return {
        driver: stand_in.compile_into(folder / str(driver), driver=driver)
        for driver in (450, 470, 535)
    }


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("stride", [24, 32, 16])
def test_every_layout_of_an_entry_gives_the_right_pids_and_sizes(nvml, stride, count):
    listed = dict(list(FOUR.items())[:count])
    nvml.say(f"v3_stride {stride}", gpu(A), *procs(listed))

    sample = nvml.vendor.sample(A)

    assert {one.pid: one.memory_bytes for one in sample.processes} == listed


def test_a_layout_that_nobody_knows_makes_the_list_unreadable(nvml):
    nvml.say("v3_stride 40", gpu(A), *procs(FOUR))

    assert nvml.vendor.sample(A).processes is None


@pytest.mark.parametrize("stride", [24, 32, 16])
def test_a_driver_of_the_time_of_the_changed_layout_is_read_rightly(nvml, older, stride):
    nvml.say(f"v3_stride {stride}", gpu(A), *procs(FOUR))

    (sample,) = nvml.read_with(older[535])["samples"]

    assert {one["pid"]: one["memory_bytes"] for one in sample["processes"]} == FOUR


@pytest.mark.parametrize("driver", [450, 470])
def test_an_old_driver_is_read_through_its_older_calls(nvml, older, driver):
    nvml.say(gpu(A, used=2**30), *procs(FOUR), *procs({555: MIB}, "graphics"))

    (sample,) = nvml.read_with(older[driver])["samples"]

    assert {one["pid"] for one in sample["processes"]} == {*FOUR, 555}
    # Its version of the call counts the driver's own share as used, and does not say how much it is.
    assert sample["memory_used_bytes"] == 2**30 + 2**29
    assert "memory_reserved_bytes" not in sample
    assert sample["throttle"] == ""


def test_computing_drawing_and_shared_processes_are_one_list(nvml):
    nvml.say(
        gpu(A),
        *procs({10: MIB, 11: MIB}),
        *procs({11: 2**64 - 1, 12: 5}, "graphics"),
        *procs({13: MIB}, "mps"),
    )

    found = {one.pid: one for one in nvml.vendor.sample(A).processes}

    assert found == {
        10: ProcessUse(pid=10, memory_bytes=MIB),
        11: ProcessUse(pid=11, memory_bytes=MIB),
        12: ProcessUse(pid=12, memory_bytes=5, graphics_only=True),
        13: ProcessUse(pid=13, memory_bytes=MIB),
    }


def test_memory_that_the_driver_does_not_know_is_none(nvml):
    nvml.say(gpu(A), *procs({10: 2**64 - 1}))

    assert nvml.vendor.sample(A).processes == (ProcessUse(pid=10, memory_bytes=None),)


@pytest.mark.parametrize("garbage", ["proc 0 1000", "proc 4294967295 1000", "proc 314572800 1"])
def test_a_list_with_an_impossible_pid_is_unreadable_not_empty(nvml, garbage):
    nvml.say(gpu(A), "proc 4242 1000", garbage, gpu(B))

    assert nvml.vendor.sample(A).processes is None
    assert nvml.vendor.sample(B).processes == ()


def test_processes_that_come_between_counting_and_listing_are_asked_for_again(nvml):
    nvml.say(gpu(A, need_room=40), *procs(FOUR))

    assert pids(nvml.vendor.sample(A)) == list(FOUR)


def test_a_list_that_never_fits_is_unreadable(nvml):
    nvml.say(gpu(A, need_room=1_000_000), *procs(FOUR))
    nvml.count_calls()

    assert nvml.vendor.sample(A).processes is None
    assert nvml.calls.count("nvmlDeviceGetComputeRunningProcesses_v3") < 20


def test_a_long_list_is_read_whole(nvml):
    many = dict.fromkeys(range(2000, 2090), MIB)
    nvml.say(gpu(A), *procs(many))

    assert pids(nvml.vendor.sample(A)) == list(many)


@pytest.mark.parametrize("call", ["Compute", "Graphics", "MPSCompute"])
def test_not_found_means_nobody(nvml, call):
    nvml.say(gpu(A), f"error nvmlDeviceGet{call}RunningProcesses_v3 {stand_in.NOT_FOUND}")

    sample = nvml.vendor.sample(A)

    assert (sample.health, sample.processes) == ("ok", ())


@pytest.mark.parametrize("call", ["Compute", "Graphics", "MPSCompute"])
@pytest.mark.parametrize("code", [stand_in.NO_PERMISSION, stand_in.TIMEOUT, stand_in.UNKNOWN])
def test_a_list_that_fails_makes_all_of_it_unreadable_and_nothing_else(nvml, call, code):
    nvml.say(gpu(A, util=9), "proc 9 9", f"error nvmlDeviceGet{call}RunningProcesses_v3 {code}")

    sample = nvml.vendor.sample(A)

    assert (sample.health, sample.processes, sample.utilization_percent) == ("ok", None, 9)


def test_a_device_that_keeps_no_list_is_unreadable_but_may_do_without_drawing_and_shared_ones(nvml):
    def unsupported(call):
        versions = ("_v3", "_v2", "")
        return [f"error nvmlDeviceGet{call}RunningProcesses{one} 3" for one in versions]

    nvml.say(gpu(A), "proc 9 9", *unsupported("Graphics"), *unsupported("MPSCompute"))
    assert pids(nvml.vendor.sample(A)) == [9]
    nvml.say(gpu(A), "proc 9 9", *unsupported("Compute"))
    assert nvml.vendor.sample(A).processes is None


@pytest.mark.root
def test_a_process_that_is_gone_keeps_its_row_and_its_memory_and_accuses_nobody(
    nvml, scan, processes, node
):
    with subprocess.Popen(["true"]) as ended:
        pass
    nvml.say(gpu(A, used=32_000 * MIB), *procs({ended.pid: 32_000 * MIB}))
    lookout = Lookout(
        vendor=nvml.vendor,
        readings=Readings(nvml.vendor, nvml.clock),
        processes=processes,
        names=Names(SystemUsers()),
        clock=nvml.clock,
        scan=scan,
    )
    device = DeviceInfo(uuid=A, vendor="nvidia", index=0, model="A100", node_paths=(node,))

    lookout.look([device], RecordGate(nvml.state.with_name("gate"), [A]), full=True)
    nvml.hands.pass_time(ORPHANED_AFTER.total_seconds())
    sight = lookout.look([device], RecordGate(nvml.state.with_name("gate"), [A]), full=True)

    (row,) = sight.samples[A].processes
    assert (row.pid, row.uid, row.unix_name) == (ended.pid, None, None)
    assert row.memory_bytes == sight.samples[A].memory_used_bytes == 32_000 * MIB
    assert sight.observed[A].holders == ()
    assert [one.code for one in lookout.problems()] == ["ghost_use"]
