"""The NVIDIA vendor against a compiled stand-in of its library, through the unmodified pynvml."""

import ctypes
import json
import os
import subprocess
import sys

import pytest

from tests.host.clocks import Hands
from tests.host.kit import ROOT
from tests.nvml import stand_in
from workers.host.vendors.base import VendorError
from workers.host.vendors.nvidia import NvidiaVendor

pytestmark = pytest.mark.compiler
A, B = "GPU-aaaaaaaa", "GPU-bbbbbbbb"


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Loaded once: pynvml keeps the first library it meets."""
    path = stand_in.compile_into(tmp_path_factory.mktemp("nvml"))
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    return path


@pytest.fixture
def state(library, tmp_path, monkeypatch):
    path = tmp_path / "state"
    monkeypatch.setenv("NVML_STAND_IN", str(path))
    # The library reads the environment of the process, which os.environ has just changed.
    stand_in.write(path, stand_in.gpu(A, minor=3), stand_in.gpu(B, minor=1, fan=30))
    return path


@pytest.fixture
def vendor(state):
    return NvidiaVendor(Hands().clock())


def test_devices_have_the_node_of_their_minor_not_of_their_index(vendor):
    first, second = vendor.devices()

    assert (first.uuid, first.index, first.minor) == (A, 0, 3)
    assert first.node_paths == ("/dev/nvidia3",)
    assert second.node_paths == ("/dev/nvidia1",)
    assert first.memory_bytes == 80 * 2**30
    assert first.bus_id == "00000000:07:00.0"


def test_every_figure_is_in_its_unit_and_a_missing_one_is_none(vendor, state):
    stand_in.write(
        state,
        stand_in.gpu(A, util=93, used=5 * 2**30, power=250_500, temp=61, clock=1410, throttle=0x24),
        "proc 4242 5368709120",
        "proc 4243 1000 graphics",
    )

    sample = vendor.sample(A)

    assert sample.health == "ok"
    assert sample.utilization_percent == 93
    assert sample.memory_used_bytes == 5 * 2**30
    assert sample.power_w == 250.5
    assert sample.power_limit_w == 400
    assert sample.temperature_c == 61
    assert sample.sm_clock_mhz == 1410
    assert sample.fan_percent is None
    assert sample.throttle == "power cap, thermal"
    processes = {process.pid: process for process in sample.processes}
    assert processes[4242].memory_bytes == 5 * 2**30
    assert not processes[4242].graphics_only
    assert processes[4243].graphics_only


@pytest.mark.parametrize("sentinel", ["temp=4294967295", "power=4294967295", "util=255"])
def test_a_figure_that_cannot_be_one_is_none(vendor, state, sentinel):
    name, _, value = sentinel.partition("=")
    stand_in.write(state, stand_in.gpu(A, **{name: value}))

    sample = vendor.sample(A)

    field = {"temp": "temperature_c", "power": "power_w", "util": "utilization_percent"}[name]
    assert getattr(sample, field) is None
    assert sample.health == "ok"


@pytest.mark.parametrize("garbage", ["proc 0 1000", "proc 4294967295 1000", "proc 314572800 1"])
def test_a_list_with_an_impossible_pid_is_unreadable_not_empty(vendor, state, garbage):
    stand_in.write(state, stand_in.gpu(A), "proc 4242 1000", garbage)

    assert vendor.sample(A).processes is None


def test_a_lost_device_hides_no_other(vendor, state):
    vendor.devices()
    stand_in.write(state, stand_in.gpu(A), "error * 15", stand_in.gpu(B, util=50))

    assert vendor.sample(A).health == "lost"
    assert vendor.sample(A).processes is None
    assert vendor.sample(B).utilization_percent == 50
    assert [device.uuid for device in vendor.devices()] == [B]
    stand_in.write(state, stand_in.gpu(A), stand_in.gpu(B))
    assert vendor.sample(A).health == "ok"


def test_a_library_that_cannot_start_is_unknown_and_tried_again_later(vendor, state, monkeypatch):
    present = [100.0]
    monkeypatch.setattr("workers.host.vendors.nvidia.library.time.monotonic", lambda: present[0])
    stand_in.write(state, "error nvmlInit 18", stand_in.gpu(A))
    with pytest.raises(VendorError, match="cannot start"):
        vendor.devices()
    assert vendor.sample(A).health == "unknown"

    stand_in.write(state, stand_in.gpu(A))
    assert vendor.sample(A).health == "unknown"
    present[0] += 1.5

    assert vendor.sample(A).health == "ok"


def test_a_driver_that_was_replaced_under_us_is_unknown_not_lost(vendor, state, monkeypatch):
    present = [100.0]
    monkeypatch.setattr("workers.host.vendors.nvidia.library.time.monotonic", lambda: present[0])
    vendor.devices()
    stand_in.write(state, stand_in.gpu(A), "error * 18")

    assert vendor.sample(A).health == "unknown"
    stand_in.write(state, stand_in.gpu(A))
    present[0] += 1.5
    assert vendor.sample(A).health == "ok"


def test_an_old_driver_is_read_through_its_older_calls(state, tmp_path):
    stand_in.write(state, stand_in.gpu(A, used=2**30), "proc 4242 1000")
    library = stand_in.compile_into(tmp_path / "old", driver=470)

    done = subprocess.run(
        [sys.executable, "-m", "tests.nvml.read"],
        cwd=ROOT,
        env={**os.environ, "LD_LIBRARY_PATH": str(library.parent), "NVML_STAND_IN": str(state)},
        capture_output=True,
        text=True,
        check=True,
    )

    sample = json.loads(done.stdout)["samples"][0]
    assert sample["processes"] == [{"pid": 4242, "memory_bytes": 1000}]
    # Its version of the call counts the driver's own share as used.
    assert sample["memory_used_bytes"] == 2**30 + 2**29
    assert "memory_reserved_bytes" not in sample


def test_without_the_library_there_is_a_sentence_and_no_crash(tmp_path):
    code = (
        "from workers.host.clock import HostClock\n"
        "from workers.host.vendors.nvidia import NvidiaVendor\n"
        "print(NvidiaVendor(HostClock()).sample('GPU-x').health)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "LD_LIBRARY_PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )

    # "lost" where this machine has a driver: it knows of no such device.
    assert done.stdout in {"unknown\n", "lost\n"}
