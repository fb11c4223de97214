"""What the agent remembers between looks: activity, devices, and when to fetch again."""

from datetime import timedelta

import pytest

from reservations.core.wire import DeviceInfo, Sample
from tests.host.clocks import NOON, Hands
from workers.host.activity import Activity
from workers.host.fleet import Fleet
from workers.host.links import next_fetch_s
from workers.host.vendors.base import VendorError

GIB = 2**30


def sample(minutes=0, **fields):
    return {"GPU-1": Sample(uuid="GPU-1", at=NOON + timedelta(minutes=minutes), **fields)}


def test_a_device_was_busy_when_it_computed_or_its_memory_grew(tmp_path):
    activity = Activity(tmp_path / "activity.json")

    def last_busy(minutes, **fields):
        return activity.stamp(sample(minutes, **fields))["GPU-1"].last_busy

    assert last_busy(0, utilization_percent=1, memory_used_bytes=GIB) is None
    assert last_busy(1, utilization_percent=5, memory_used_bytes=GIB) == NOON + timedelta(minutes=1)
    assert last_busy(2, utilization_percent=4, memory_used_bytes=GIB) == NOON + timedelta(minutes=1)
    grown = last_busy(3, utilization_percent=0, memory_used_bytes=2 * GIB)
    assert grown == NOON + timedelta(minutes=3)
    assert last_busy(4, utilization_percent=0, memory_used_bytes=GIB) == grown
    assert last_busy(5) == grown


def test_a_loss_and_a_return_are_told_once_and_not_knowing_is_neither(tmp_path):
    activity = Activity(tmp_path / "activity.json")
    told = [
        activity.changes(sample(health=health))
        for health in ("ok", "unknown", "lost", "lost", "stale", "unknown", "ok", "ok")
    ]

    assert [change for changes in told for _, change in changes] == ["device_lost", "device_back"]


class Cards:
    name = "cards"
    lists_processes = True
    trusts_uids = False

    def __init__(self, *uuids):
        self.uuids = uuids
        self.broken = False

    def devices(self):
        if self.broken:
            raise VendorError("the driver was replaced")
        return tuple(
            DeviceInfo(uuid=uuid, vendor=self.name, index=index, model="Card", minor=index)
            for index, uuid in enumerate(self.uuids)
        )

    def sample(self, uuid):
        return Sample(uuid=uuid, at=NOON, health="unknown")

    def problems(self):
        return []

    def close(self):
        pass


def uuids(fleet):
    return [device.uuid for device in fleet.devices]


def test_a_device_that_vanished_stays_known(tmp_path):
    cards = Cards("GPU-1", "GPU-2")
    fleet = Fleet(cards, Hands().clock(), tmp_path / "inventory.json")
    assert fleet.refresh()
    assert not fleet.refresh()

    cards.uuids = ("GPU-2",)
    assert fleet.refresh()

    assert sorted(uuids(fleet)) == ["GPU-1", "GPU-2"]


def test_devices_are_remembered_over_a_restart_while_the_driver_fails_but_not_over_a_reboot(
    tmp_path,
):
    cards, hands = Cards("GPU-1"), Hands()
    Fleet(cards, hands.clock(), tmp_path / "inventory.json").refresh()
    cards.broken = True

    restarted = Fleet(cards, hands.clock(), tmp_path / "inventory.json")
    rebooted = Fleet(cards, hands.clock("boot-2"), tmp_path / "inventory.json")

    assert not restarted.refresh()
    assert restarted.problem == "the driver was replaced"
    assert uuids(restarted) == ["GPU-1"]
    assert uuids(rebooted) == []


@pytest.mark.parametrize(
    ("ends_s", "began_s", "now_s", "expected_s"),
    [
        ([], 0, 0, 60),
        ([3600], 0, 0, 60),
        ([30], 0, 1, 26),  # 3 s before the end
        ([30, 20], 0, 1, 16),
        ([30], 27.5, 28, 60),  # that one was made, and knows the end
        ([30], 26, 28, 0),  # the last one began too early, and took until now
        ([-5], 0, 1, 60),
    ],
)
def test_the_plan_is_fetched_shortly_before_every_end_and_once_a_minute(
    ends_s, began_s, now_s, expected_s
):
    def at(seconds):
        return NOON + timedelta(seconds=seconds)

    ends = [at(seconds) for seconds in ends_s]

    assert next_fetch_s(ends, began=at(began_s), now=at(now_s)) == expected_s
