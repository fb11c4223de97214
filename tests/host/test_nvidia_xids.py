"""Xids: errors that the driver tells of by event."""

import pytest

from tests.nvml.stage import A, B
from tests.nvml.stand_in import gpu
from tests.waiting import until

pytestmark = pytest.mark.compiler


@pytest.fixture
def watched(nvml):
    """The devices are listed, and their events waited for."""
    nvml.count_calls()
    nvml.vendor.devices()
    until(lambda: "nvmlEventSetWait_v2" in nvml.calls)
    return nvml


def test_a_serious_one_is_a_problem_of_its_device_with_count_and_instant(watched):
    watched.xid(A, 79)
    until(watched.texts)
    watched.hands.pass_time(60)
    watched.xid(A, 79)
    until(lambda: "2 times" in watched.texts()[0])

    (problem,) = watched.vendor.problems()

    assert (problem.code, problem.device) == ("xid", A)
    assert problem.text == (
        "The driver reported Xid 79 (the GPU has fallen off the bus) 2 times, "
        "last at 2027-03-01 12:01:00 UTC."
    )


def test_those_of_programs_at_fault_are_no_problem_of_the_device(watched):
    for number in (13, 31, 43, 48):
        watched.xid(B, number)

    until(watched.texts)

    (text,) = watched.texts()
    assert text.startswith("The driver reported Xid 48 (an uncorrectable memory error) once, ")


def test_one_is_forgotten_after_a_day(watched):
    watched.xid(A, 48)
    until(watched.texts)

    watched.hands.pass_time(24 * 3600)

    assert watched.texts() == []


def test_devices_that_came_later_are_watched_too(watched):
    watched.say(gpu(A), gpu(B), gpu("GPU-new"))
    watched.vendor.devices()
    registered = "nvmlDeviceRegisterEvents"
    until(lambda: watched.calls.count(registered) == 5)
    until(lambda: watched.calls[::-1].index("nvmlEventSetWait_v2") == 0)

    watched.xid("GPU-new", 79)

    until(watched.texts)


def test_a_driver_without_events_is_read_all_the_same(nvml):
    nvml.say("error nvmlEventSetCreate 3", gpu(A))

    assert [one.uuid for one in nvml.vendor.devices()] == [A]
    assert nvml.vendor.sample(A).health == "ok"
    assert nvml.texts() == []
