"""Readings with a deadline. The vendor is a double whose calls hang, fail or answer."""

import threading

import pytest

from reservations.core.wire import Sample
from tests.host.clocks import NOON, Hands
from tests.waiting import until
from workers.host import readings
from workers.host.readings import Readings


class SlowVendor:
    name = "slow"
    lists_processes = True
    trusts_uids = False

    def __init__(self) -> None:
        self.hang = threading.Event()
        self.calls = 0

    def devices(self):
        return ()

    def sample(self, uuid):
        if uuid == "hangs":
            self.calls += 1
            self.hang.wait(20)
        if uuid == "fails":
            raise RuntimeError("a bug")
        return Sample(uuid=uuid, at=NOON, processes=())

    def problems(self):
        return []

    def close(self):
        self.hang.set()


@pytest.fixture
def vendor():
    made = SlowVendor()
    yield made
    made.close()


@pytest.fixture
def taken(vendor):
    made = Readings(vendor, Hands().clock())
    yield made
    made.close()


def test_a_hung_device_holds_up_no_other_and_its_calls_are_not_stacked(vendor, taken, monkeypatch):
    first = taken.take(["hangs", "works"], wait_s=0.1)
    assert first["hangs"].health == "unknown"
    assert first["hangs"].processes is None
    assert first["works"].processes == ()

    monkeypatch.setattr(readings, "DEADLINE_S", 0.0)
    second = taken.take(["hangs", "works"], wait_s=0.1)

    assert second["hangs"].health == taken.newest("hangs").health == "stale"
    assert second["works"].health == "ok"
    assert vendor.calls == 1
    vendor.hang.set()
    until(lambda: taken.newest("hangs").health == "ok")
    assert taken.take(["hangs"])["hangs"].processes == ()
    assert vendor.calls == 2


def test_an_answer_to_an_older_question_is_not_taken_for_a_fresh_one(vendor, taken):
    taken.take(["hangs"], wait_s=0.05)
    threading.Timer(0.1, vendor.hang.set).start()

    again = taken.take(["hangs"], wait_s=1)

    assert again["hangs"].processes is None


def test_a_vendor_that_fails_makes_its_device_unknown(taken):
    found = taken.take(["fails", "works"])

    assert found["fails"].health == "unknown"
    assert found["fails"].processes is None
    assert found["works"].health == "ok"
