"""What the NVIDIA vendor lists and reads, over a compiled stand-in of its library and unmodified pynvml."""

import os
import subprocess
import sys

import pytest

from reservations.core.wire import DeviceInfo
from tests.host.kit import ROOT
from tests.nvml import stand_in
from tests.nvml.stage import A, B
from tests.nvml.stand_in import gpu
from workers.host.activity import Activity
from workers.host.fleet import Fleet
from workers.host.gates.record import RecordGate
from workers.host.holders import HolderScan
from workers.host.lookout import Lookout
from workers.host.names import Names, SystemUsers
from workers.host.readings import Readings
from workers.host.vendors.base import VendorError

pytestmark = pytest.mark.compiler


@pytest.fixture
def present(monkeypatch):
    """Seconds of the clock that tells when the library is tried again; the test moves it."""
    seconds = [100.0]
    monkeypatch.setattr("workers.host.vendors.nvidia.library.time.monotonic", lambda: seconds[0])
    return seconds


class TestDevices:
    def test_have_the_node_of_their_minor_not_of_their_index(self, nvml):
        nvml.say(gpu("GPU-x", minor=2), gpu("GPU-y", minor=0), gpu("GPU-z", minor=1))

        found = nvml.vendor.devices()

        assert [(one.uuid, one.index, one.minor) for one in found] == [
            ("GPU-x", 0, 2),
            ("GPU-y", 1, 0),
            ("GPU-z", 2, 1),
        ]
        assert [one.node_paths for one in found] == [
            ("/dev/nvidia2",),
            ("/dev/nvidia0",),
            ("/dev/nvidia1",),
        ]

    def test_are_described(self, nvml):
        nvml.say(gpu(A, name="NVIDIA_A100-SXM4-80GB"))

        (one,) = nvml.vendor.devices()

        assert one.model == "NVIDIA A100-SXM4-80GB"
        assert one.memory_bytes == 80 * 2**30
        assert one.bus_id == "00000000:07:00.0"

    @pytest.mark.parametrize(("display", "said"), [(1, True), (0, False), (None, None)])
    def test_say_whether_they_drive_a_display(self, nvml, display, said):
        nvml.say(gpu(A, display=display))

        assert nvml.vendor.devices()[0].display is said

    def test_keep_their_uuid_when_index_and_minor_change_at_a_new_start(self, nvml):
        nvml.vendor.devices()
        nvml.say(gpu(B, minor=0))
        nvml.vendor.close()

        (one,) = nvml.vendor.devices()

        assert (one.uuid, one.index, one.node_paths) == (B, 0, ("/dev/nvidia0",))
        assert nvml.vendor.sample(B).health == "ok"
        assert nvml.vendor.sample(A).health == "lost"

    def test_that_vanish_without_any_event_are_found_by_comparison(self, nvml, tmp_path):
        fleet = Fleet(nvml.vendor, nvml.clock, tmp_path / "inventory.json")
        fleet.refresh()
        nvml.say(gpu(B, minor=1))

        changed = fleet.refresh()
        sample = nvml.vendor.sample(A)

        assert changed
        assert {one.uuid for one in fleet.devices} == {A, B}
        assert sample.health == "lost"
        assert Activity(tmp_path / "activity").changes({A: sample}) == [(A, "device_lost")]

    @pytest.mark.parametrize("minor", [2**32 - 1, None])
    def test_without_a_minor_have_no_node_to_gate(self, nvml, minor):
        nvml.say(gpu(A, minor=minor))

        (one,) = nvml.vendor.devices()

        assert (one.minor, one.node_paths) == (None, ())

    @pytest.mark.parametrize("code", [stand_in.NO_PERMISSION, stand_in.RESET_REQUIRED, 11, 999])
    def test_that_cannot_be_opened_hide_no_other_and_are_told_of(self, nvml, code):
        nvml.say(gpu(A), f"error nvmlDeviceGetHandleByIndex_v2 {code}", gpu(B))

        assert [one.uuid for one in nvml.vendor.devices()] == [B]
        (text,) = nvml.texts()
        assert text.startswith("The driver counts a GPU at index 0 that it cannot name: ")


class TestFigures:
    def test_are_in_their_units_and_a_missing_one_is_none(self, nvml):
        nvml.say(gpu(A, util=93, used=5 * 2**30, power=250_500, temp=61, clock=1410, throttle=0x24))

        sample = nvml.vendor.sample(A)

        assert sample.health == "ok"
        assert sample.utilization_percent == 93
        assert sample.memory_used_bytes == 5 * 2**30
        assert sample.memory_reserved_bytes == 2**29
        assert sample.power_w == 250.5
        assert sample.power_limit_w == 400
        assert sample.temperature_c == 61
        assert sample.sm_clock_mhz == 1410
        assert sample.fan_percent is None
        assert sample.throttle == "power cap, thermal"
        assert sample.ecc_uncorrected == 0

    @pytest.mark.parametrize(
        ("key", "value", "field"),
        [
            ("temp", 2**32 - 1, "temperature_c"),
            ("power", 2**32 - 1, "power_w"),
            ("limit", 2**32 - 1, "power_limit_w"),
            ("util", 255, "utilization_percent"),
            ("fan", 2**32 - 1, "fan_percent"),
            ("clock", 2**32 - 5, "sm_clock_mhz"),
            ("ecc", 9_223_372_036_854_775_794, "ecc_uncorrected"),
            ("throttle", 2**64 - 1, "throttle"),
            ("total", 9_223_372_036_854_775_794, "memory_total_bytes"),
            ("total", 0, "memory_total_bytes"),
            ("used", 81 * 2**30, "memory_used_bytes"),
            ("reserved", 2**64 - 1, "memory_reserved_bytes"),
        ],
    )
    def test_that_cannot_be_true_are_none(self, nvml, key, value, field):
        nvml.say(gpu(A, **{key: value}))

        sample = nvml.vendor.sample(A)

        assert getattr(sample, field) is None
        assert sample.health == "ok"

    def test_that_a_card_does_not_have_leave_it_usable(self, nvml):
        every = ("temp", "power", "limit", "clock", "throttle", "ecc", "util")
        nvml.say(gpu(A, **dict.fromkeys(every)), "proc 4242 1000")

        sample = nvml.vendor.sample(A)

        assert sample.health == "ok"
        assert (sample.power_w, sample.utilization_percent, sample.throttle) == (None,) * 3
        assert [process.pid for process in sample.processes] == [4242]

    def test_of_memory_are_unknown_where_it_is_the_hosts_own(self, nvml):
        nvml.say(gpu(A, total=None, util=70), "proc 4242 1000")

        (one,) = nvml.vendor.devices()
        sample = nvml.vendor.sample(A)

        assert one.memory_bytes is None
        assert (sample.health, sample.utilization_percent) == ("ok", 70)
        assert (sample.memory_used_bytes, sample.memory_total_bytes) == (None, None)
        assert len(sample.processes) == 1

    def test_that_change_slowly_are_asked_for_every_ten_seconds(self, nvml):
        nvml.say(gpu(A, fan=30, temp=50))
        nvml.vendor.sample(A)
        nvml.say(gpu(A, fan=60, temp=51))

        nvml.hands.pass_time(1)
        soon = nvml.vendor.sample(A)
        nvml.hands.pass_time(9)
        later = nvml.vendor.sample(A)

        assert (soon.temperature_c, soon.fan_percent) == (51, 30)
        assert later.fan_percent == 60

    def test_cost_few_calls_and_never_those_that_take_long(self, nvml):
        nvml.vendor.sample(A)
        nvml.count_calls()

        for _ in range(5):
            nvml.hands.pass_time(1)
            nvml.vendor.sample(A)

        assert len(nvml.calls) <= 5 * 7
        assert not any("Pcie" in call for call in nvml.calls)

    def test_of_a_name_that_is_no_text_are_read_all_the_same(self, nvml):
        state = gpu(A, name="X").encode().replace(b"name=X", b"name=\xff\xfe")
        nvml.state.write_bytes(state + b"\n")

        (one,) = nvml.vendor.devices()

        assert one.model == "NVIDIA GPU"


class TestFailures:
    @pytest.mark.parametrize("code", [2, 3, 4, 6, 10, 13, 14, 17, 25, 999, 12345])
    def test_of_one_figure_leave_out_that_figure_alone(self, nvml, code):
        nvml.say(gpu(A, util=40), f"error nvmlDeviceGetPowerUsage {code}", gpu(B))

        sample = nvml.vendor.sample(A)

        assert (sample.health, sample.power_w) == ("ok", None)
        assert (sample.utilization_percent, sample.temperature_c) == (40, 41)

    @pytest.mark.parametrize(
        ("code", "health", "words"),
        [
            (stand_in.GPU_IS_LOST, "lost", "the GPU is lost"),
            (stand_in.RESET_REQUIRED, "lost", "the GPU needs a reset"),
            (28, "lost", "the GPU is not there"),
            (stand_in.UNKNOWN, "lost", "an unknown error of the driver"),
            (stand_in.TIMEOUT, "unknown", "did not answer in its own time limit"),
            (stand_in.NO_PERMISSION, "unknown", "no permission"),
        ],
    )
    def test_of_a_device_are_its_own_and_told_in_words(self, nvml, code, health, words):
        nvml.say(gpu(A), f"error * {code}", gpu(B, util=50))

        sample, other = nvml.vendor.sample(A), nvml.vendor.sample(B)

        assert (sample.health, sample.processes) == (health, None)
        assert other.utilization_percent == 50
        (problem,) = nvml.vendor.problems()
        assert problem.device == A
        assert words in problem.text

    def test_are_told_with_what_a_look_saw(self, nvml, processes, tmp_path):
        nvml.say(gpu(A), "error * 16")
        lookout = Lookout(
            vendor=nvml.vendor,
            readings=Readings(nvml.vendor, nvml.clock),
            processes=processes,
            names=Names(SystemUsers()),
            clock=nvml.clock,
            scan=HolderScan(processes, only_uids=frozenset()),
        )
        device = DeviceInfo(uuid=A, vendor="nvidia", index=0, model="A100")

        sight = lookout.look([device], RecordGate(tmp_path / "gate", [A]), full=False)

        assert sight.observed[A].holders is None
        assert [one.code for one in lookout.problems()] == ["device_fault"]

    def test_are_over_when_the_device_answers_again(self, nvml):
        nvml.vendor.devices()
        nvml.say(gpu(A), "error * 15", gpu(B))
        assert nvml.vendor.sample(A).health == "lost"
        assert [one.uuid for one in nvml.vendor.devices()] == [B]

        nvml.say(gpu(A), gpu(B))

        assert nvml.vendor.sample(A).health == "ok"
        nvml.vendor.devices()
        assert nvml.texts() == []

    @pytest.mark.parametrize(
        ("code", "words"),
        [
            (stand_in.UNKNOWN, "an unknown error of the driver"),
            (stand_in.DRIVER_NOT_LOADED, "NVIDIA's driver is not loaded"),
            (stand_in.VERSION_MISMATCH, "of different versions"),
        ],
    )
    def test_of_the_start_freeze_what_is_known_and_lose_nothing(
        self, nvml, tmp_path, present, code, words
    ):
        fleet = Fleet(nvml.vendor, nvml.clock, tmp_path / "inventory.json")
        fleet.refresh()
        nvml.vendor.close()
        nvml.say(f"error nvmlInit {code}")

        assert not fleet.refresh()
        sample = nvml.vendor.sample(A)

        assert fleet.problem.startswith("NVML cannot start: ")
        assert words in fleet.problem
        assert [one.uuid for one in fleet.devices] == [A, B]
        assert sample.health == "unknown"
        assert Activity(tmp_path / "activity").changes({A: sample}) == []

    def test_of_the_start_are_tried_again_later(self, nvml, present):
        nvml.say("error nvmlInit 18", gpu(A))
        with pytest.raises(VendorError, match="cannot start"):
            nvml.vendor.devices()

        nvml.say(gpu(A))
        assert nvml.vendor.sample(A).health == "unknown"
        present[0] += 1.5

        assert nvml.vendor.sample(A).health == "ok"

    def test_for_a_driver_that_was_replaced_under_us_are_unknown_not_lost(self, nvml, present):
        nvml.vendor.devices()
        nvml.say(gpu(A), "error * 18")
        assert nvml.vendor.sample(A).health == "unknown"

        nvml.say(gpu(A))
        present[0] += 1.5

        assert nvml.vendor.sample(A).health == "ok"

    def test_for_want_of_the_library_are_a_sentence_and_no_crash(self, tmp_path):
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


def test_no_program_is_started_to_read_a_device(nvml):
    code = (
        "import sys\n"
        "from workers.host.clock import HostClock\n"
        "from workers.host.vendors.nvidia import NvidiaVendor\n"
        "starts = {'subprocess.Popen', 'os.system', 'os.posix_spawn', 'os.exec', 'os.fork'}\n"
        "sys.addaudithook(lambda event, _: print(event) if event in starts else None)\n"
        "vendor = NvidiaVendor(HostClock())\n"
        "for one in vendor.devices(): print(vendor.sample(one.uuid).health)\n"
    )

    assert nvml.run([sys.executable, "-c", code]) == "ok\nok\n"
