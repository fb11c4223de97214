"""The basics on a real NVIDIA GPU, where this machine has one."""

import pytest

from tests.waiting import until
from workers.host.clock import HostClock
from workers.host.descriptors import numbers_of
from workers.host.vendors.nvidia import NvidiaVendor

pytestmark = pytest.mark.gpu


@pytest.fixture
def vendor():
    made = NvidiaVendor(HostClock())
    yield made
    made.close()


def test_devices_are_listed_with_nodes_that_exist(vendor):
    found = vendor.devices()

    assert found
    assert len({one.uuid for one in found}) == len(found)
    for one in found:
        assert one.uuid.startswith("MIG-" if one.kind == "mig" else "GPU-")
        assert one.model
        assert len(numbers_of(one.node_paths)) == len(one.node_paths) >= 1


def test_whole_devices_have_plausible_figures_and_a_list_that_can_be_read(vendor):
    for one in vendor.devices():
        sample = vendor.sample(one.uuid)

        assert sample.health == "ok"
        assert (sample.processes is None) == one.divided
        if one.kind == "gpu":
            assert sample.temperature_c is not None
            assert sample.temperature_c > 0


def test_the_driver_is_let_go_of_and_opened_again(vendor):
    (first, *_) = vendor.devices()

    vendor.close()

    until(lambda: vendor.sample(first.uuid).health == "ok")
    assert vendor.problems() == []
