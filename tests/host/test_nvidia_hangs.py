"""Calls that hang, and letting go of a library that somebody is inside of."""

import sys
import threading

import pytest

from tests.nvml.stage import A, B
from tests.nvml.stand_in import gpu
from tests.waiting import until
from workers.host import readings
from workers.host.readings import Readings

pytestmark = pytest.mark.compiler
HANG_MS = 1500


@pytest.fixture
def taken(nvml):
    made = Readings(nvml.vendor, nvml.clock)
    yield made
    made.close()


def test_a_figure_that_hangs_keeps_back_neither_who_is_there_nor_other_devices(nvml, taken):
    nvml.vendor.devices()
    nvml.say(
        gpu(A, util=80), f"delay nvmlDeviceGetPowerUsage {HANG_MS}", "proc 9 9", gpu(B, util=50)
    )

    first = taken.take([A, B], wait_s=1)
    second = taken.take([A, B], wait_s=1)

    for found in (first, second):
        assert [one.pid for one in found[A].processes] == [9]
        assert found[A].utilization_percent == 80
        assert found[A].power_w is None
        assert (found[B].utilization_percent, found[B].power_w) == (50, 62)


def test_a_figure_that_hangs_is_shown_as_long_as_it_is_young_and_said_to_hang(nvml, monkeypatch):
    monkeypatch.setattr("workers.host.vendors.nvidia.sensors.HANGS_AFTER_S", 0.0)
    assert nvml.vendor.sample(A).power_w == 62
    nvml.say(gpu(A), f"delay nvmlDeviceGetPowerUsage {HANG_MS}")

    nvml.hands.pass_time(5)
    young = nvml.vendor.sample(A)
    nvml.hands.pass_time(15)
    old = nvml.vendor.sample(A)

    assert (young.power_w, young.health) == (62, "ok")
    assert (old.power_w, old.health) == (None, "ok")
    (text,) = nvml.texts()
    assert text.startswith("The driver has not answered for temperature, power and fan")
    nvml.say(gpu(A))
    until(lambda: not nvml.texts())
    assert nvml.vendor.sample(A).power_w == 62


def test_calls_that_hang_are_not_stacked(nvml):
    nvml.say(gpu(A), f"delay nvmlDeviceGetPowerUsage {HANG_MS}")
    nvml.count_calls()

    for _ in range(5):
        nvml.vendor.sample(A)

    assert nvml.calls.count("nvmlDeviceGetPowerUsage") <= 1


def test_a_device_that_hangs_is_stale_and_the_others_go_on(nvml, taken, monkeypatch):
    nvml.vendor.devices()
    nvml.say(gpu(A), f"delay nvmlDeviceGetMemoryInfo_v2 {HANG_MS}", gpu(B, util=50))

    first = taken.take([A, B], wait_s=0.25)
    monkeypatch.setattr(readings, "DEADLINE_S", 0.2)
    second = taken.take([A, B], wait_s=0.25)

    assert (first[A].health, first[A].processes) == ("unknown", None)
    assert second[A].health == taken.newest(A).health == "stale"
    assert first[B].utilization_percent == second[B].utilization_percent == 50
    nvml.say(gpu(A), gpu(B))
    until(lambda: taken.newest(A).health == "ok")


def test_a_device_is_stale_before_three_readings_of_it_are_missed():
    # Somebody who watches is shown one each second.
    assert readings.DEADLINE_S < 3 * 1.0


@pytest.fixture
def inside(nvml):
    """Somebody is inside a call. The stand-in ends the process if it is shut down now, as NVML does."""
    nvml.say(gpu(A), "delay nvmlDeviceGetMemoryInfo_v2 500")
    nvml.count_calls()
    reader = threading.Thread(target=nvml.vendor.sample, args=(A,))
    reader.start()
    until(lambda: "nvmlDeviceGetMemoryInfo_v2" in nvml.calls)
    yield reader
    reader.join()


def test_closing_waits_for_whoever_is_inside_and_the_driver_is_let_go_of_then(nvml, inside):
    nvml.vendor.close()

    assert nvml.calls[-1] == "nvmlShutdown"
    nvml.say(gpu(A))
    assert nvml.vendor.sample(A).health == "ok"


def test_closing_does_not_wait_for_ever_and_the_last_one_inside_lets_go(nvml, inside, monkeypatch):
    monkeypatch.setattr("workers.host.vendors.nvidia.library.CLOSE_WAIT_S", 0.0)

    nvml.vendor.close()

    assert "nvmlShutdown" not in nvml.calls
    until(lambda: "nvmlShutdown" in nvml.calls)


def test_closing_ends_the_wait_for_events(nvml):
    nvml.vendor.devices()
    nvml.count_calls()

    nvml.vendor.close()

    assert nvml.calls[-1] == "nvmlShutdown"


def test_a_process_ends_well_while_readers_are_inside(nvml):
    nvml.say(gpu(A), "delay * 200")
    code = (
        "import threading\n"
        "from workers.host.clock import HostClock\n"
        "from workers.host.readings import Readings\n"
        "from workers.host.vendors.nvidia import NvidiaVendor\n"
        "clock = HostClock()\n"
        f"found = Readings(NvidiaVendor(clock), clock).take(['{A}'], wait_s=0.3)\n"
        f"print(found['{A}'].health)\n"
    )

    nvml.count_calls()

    assert nvml.run([sys.executable, "-c", code]) == "unknown\n"
    assert "nvmlShutdown" not in nvml.calls
