"""The words that people read on their terminals."""

from datetime import timedelta

import pytest

from reservations.core.endings import Ending
from reservations.core.wire import DeviceInfo, HostSettings, Report
from tests.core.stage import ALICE, BOB, at
from workers.host.messages import Words, of_ending, of_reports
from workers.host.spans import spoken

DEVICES = {
    f"GPU-{index}": DeviceInfo(uuid=f"GPU-{index}", vendor="test", index=index, model="A card")
    for index in range(4)
}
WORDS = Words(
    host="gpu-01",
    url="https://berth.example",
    devices=DEVICES,
    settings=HostSettings(mode="enforce", grace_s=60),
)


@pytest.fixture(autouse=True)
def in_utc(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def report(kind, *, device="GPU-0", booking=7, uid=ALICE, **fields):
    known = {"id": f"{kind}-{device}-{uid}", "at": at(0)}
    return Report(
        **{**known, "kind": kind, "device": device, "booking": booking, **fields}, uid=uid
    )


def said(*reports):
    return [(message.uid, " ".join(message.lines)) for message in of_reports(reports, WORDS)]


def ending(*, left, devices=("GPU-0",), booking=7):
    one = Ending(booking, ALICE, at(hours=1), timedelta(minutes=15), devices)
    return of_ending(one, WORDS, now=at(hours=1) - left).lines


def test_an_end_is_told_with_what_when_and_where_to_extend():
    assert ending(left=timedelta(minutes=15)) == (
        "Berth: your booking of GPU 0 on gpu-01 ends at 12:00, in 15 min.",
        "Save your work, or extend it: https://berth.example/bookings/7/",
    )


def test_a_step_that_was_missed_is_told_with_the_time_that_is_left():
    assert "in 9 min" in ending(left=timedelta(minutes=9, seconds=4))[0]


def test_an_end_of_tomorrow_is_told_with_its_day():
    assert "ends at Mon 01 Mar, 12:00, in 24 h." in ending(left=timedelta(hours=24))[0]


def test_devices_of_one_booking_are_named_together():
    text = ending(left=timedelta(minutes=1), devices=("GPU-2", "GPU-0", "GPU-1"))[0]
    assert "GPU 0, 1 and 2 on gpu-01 ends at 12:00, in 60 s." in text


def test_time_that_was_given_by_hand_has_no_page_of_its_own():
    lines = ending(left=timedelta(minutes=1), booking=None)
    assert lines[0].startswith("Berth: your time of GPU 0")
    assert lines[1].endswith("https://berth.example/")


@pytest.mark.parametrize(
    ("span", "words"),
    [
        (timedelta(seconds=-3), "0 s"),
        (timedelta(seconds=45.4), "45 s"),
        (timedelta(minutes=4, seconds=57), "5 min"),
        (timedelta(minutes=119), "119 min"),
        (timedelta(hours=23, minutes=59), "24 h"),
    ],
)
def test_time_is_rounded_as_one_would_say_it(span, words):
    assert spoken(span) == words


def test_a_warning_says_which_processes_and_why_and_what_to_do():
    assert said(report("warned", text="not booked; to be ended in 60 s", pids=(12, 11))) == [
        (
            ALICE,
            "Berth: your processes (11, 12) on GPU 0 on gpu-01: not booked; to be ended in 60 s. "
            "End them in time, or book: https://berth.example/",
        )
    ]


def test_a_signal_says_until_when_processes_may_stay():
    ((_, text),) = said(report("signalled", pids=(11,)))
    assert "were asked to end (SIGTERM)" in text
    assert "in 60 s at the latest is killed" in text


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("overrun", "has ended, and your processes (11) still run there"),
        ("killed", "did not end and were killed"),
        ("early_signalled", "were sent SIGUSR1"),
        ("delayed", "has begun, but it is not open yet: waiting. It opens by itself"),
    ],
)
def test_other_things_that_happen_to_somebody(kind, words):
    ((uid, text),) = said(report(kind, pids=(11,), text="waiting"))
    assert uid == ALICE
    assert words in text


def test_of_things_that_happen_at_once_on_one_device_the_last_is_told():
    told = said(report("overrun"), report("signalled"), report("overrun", device="GPU-1"))
    assert ["SIGTERM" in text for _, text in told] == [True, False]


def test_the_devices_of_a_booking_are_told_of_together_and_two_people_are_not():
    told = said(
        *(report("signalled", device=f"GPU-{index}", pids=(index,)) for index in range(3)),
        report("signalled", uid=BOB),
    )
    assert [uid for uid, _ in told] == [ALICE, BOB]
    assert "your processes (0, 1, 2) on GPU 0, 1 and 2 on gpu-01" in told[0][1]


def test_very_many_processes_are_not_all_named():
    ((_, text),) = said(report("killed", pids=tuple(range(100, 200))))
    assert "(100, 101, 102, 103, 104, 105, 106, 107, …)" in text


def test_an_opening_is_told():
    assert said(report("opened")) == [(ALICE, "Berth: GPU 0 on gpu-01 is open for you now.")]


def test_what_is_nobodys_business_is_not_told():
    assert said(report("intruder"), report("drift", uid=None), report("gone")) == []
