"""What every vendor must hold to. To add one: write its file, and a stage for it here."""

import ctypes
from pathlib import Path

import msgspec
import pytest

from reservations.core.wire import Inventory, Sample, Samples
from tests.host.clocks import Hands
from tests.host.kit import SimHost
from tests.nvml import stand_in
from workers.host.vendors.base import Vendor
from workers.host.vendors.nvidia import NvidiaVendor
from workers.host.vendors.simulated import SimulatedVendor

PID, USED = 4242, 3 * 2**30


class SimulatedStage:
    """Two devices; the first can be used by a real job, and lost."""

    def __init__(self, folder: Path) -> None:
        self.host = SimHost(folder)
        self.vendor: Vendor = SimulatedVendor(self.host.simulated, Hands().clock())
        self.uuids = self.host.uuids

    def use(self) -> int:
        return self.host.job("alice")

    def lose(self) -> None:
        simulated = self.host.simulated
        kept = [device for device in simulated.devices() if device.uuid != self.uuids[0]]
        simulated.prepare(kept, ["alice"])

    def close(self) -> None:
        self.host.close()


class NvidiaStage:
    """The same with the stand-in library."""

    uuids = ["GPU-aaaaaaaa", "GPU-bbbbbbbb"]

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ctypes.CDLL(str(stand_in.compile_into(folder / "library")), mode=ctypes.RTLD_GLOBAL)
        self.state = folder / "state"
        monkeypatch.setenv("NVML_STAND_IN", str(self.state))
        stand_in.write(self.state, *(stand_in.gpu(uuid) for uuid in self.uuids))
        self.vendor: Vendor = NvidiaVendor(Hands().clock())

    def use(self) -> int:
        stand_in.write(
            self.state,
            stand_in.gpu(self.uuids[0], used=USED, util=90),
            f"proc {PID} {USED}",
            stand_in.gpu(self.uuids[1]),
        )
        return PID

    def lose(self) -> None:
        stand_in.write(self.state, stand_in.gpu(self.uuids[1]))

    def close(self) -> None:
        self.vendor.close()


@pytest.fixture(params=["simulated", pytest.param("nvidia", marks=pytest.mark.compiler)])
def stage(request, tmp_path, monkeypatch):
    made = (
        SimulatedStage(tmp_path)
        if request.param == "simulated"
        else NvidiaStage(tmp_path, monkeypatch)
    )
    yield made
    made.close()


def test_devices_are_named_by_uuid_in_the_order_of_their_index(stage):
    devices = stage.vendor.devices()

    assert [device.uuid for device in devices] == stage.uuids
    assert [device.index for device in devices] == [0, 1]
    assert all(device.vendor == stage.vendor.name for device in devices)
    assert all(device.memory_bytes and device.model for device in devices)


def test_what_it_says_fits_the_wire(stage):
    stage.use()
    devices = stage.vendor.devices()
    samples = tuple(stage.vendor.sample(device.uuid) for device in devices)

    inventory = Inventory(agent_version="0", devices=devices)
    heartbeat = Samples(at=samples[0].at, agent_version="0", mode="observe", devices=samples)

    assert msgspec.json.decode(msgspec.json.encode(inventory), type=Inventory) == inventory
    assert msgspec.json.decode(msgspec.json.encode(heartbeat), type=Samples) == heartbeat


def test_an_idle_device_has_nobody_which_is_not_unknown(stage):
    sample = stage.vendor.sample(stage.uuids[0])

    assert sample.health == "ok"
    assert sample.processes == ()
    assert sample.utilization_percent == 0


def test_a_process_is_on_its_device_and_on_no_other(stage):
    pid = stage.use()

    used, idle = (stage.vendor.sample(uuid) for uuid in stage.uuids)

    assert [process.pid for process in used.processes] == [pid]
    assert used.memory_used_bytes > 0
    assert used.utilization_percent > 0
    assert idle.processes == ()


def test_a_lost_device_is_told_in_its_health_and_hides_no_other(stage):
    stage.vendor.devices()
    stage.lose()

    lost, other = (stage.vendor.sample(uuid) for uuid in stage.uuids)

    assert lost.health == "lost"
    assert lost.processes is None
    assert other.health == "ok"
    assert [device.uuid for device in stage.vendor.devices()] == stage.uuids[1:]


def test_a_device_that_never_was_is_lost_not_an_error(stage):
    sample = stage.vendor.sample("GPU-never-was")

    assert sample == Sample(uuid="GPU-never-was", at=sample.at, health="lost")


def test_the_same_question_at_the_same_instant_has_the_same_answer(stage):
    stage.use()

    assert stage.vendor.sample(stage.uuids[0]) == stage.vendor.sample(stage.uuids[0])


def test_it_can_be_asked_again_after_it_was_closed(stage):
    stage.vendor.close()

    assert stage.vendor.sample(stage.uuids[0]).health == "ok"
