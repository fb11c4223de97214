from datetime import timedelta

import pytest

from reservations.core.wire import Sample
from tests.host.clocks import NOON
from workers.host.activity import Activity


def sample(seconds, percent):
    at = NOON + timedelta(seconds=seconds)
    return {"GPU-1": Sample(uuid="GPU-1", at=at, utilization_percent=percent)}


def last_busy(activity, seconds, percent=0.0):
    return activity.stamp(sample(seconds, percent))["GPU-1"].last_busy


def test_when_a_device_last_worked_outlives_a_restart(tmp_path):
    first = Activity(tmp_path / "activity.json")
    assert last_busy(first, 0, 90.0) == NOON

    again = Activity(tmp_path / "activity.json")

    assert last_busy(again, 10) == NOON


def test_it_is_written_once_a_minute_at_most(tmp_path):
    activity = Activity(tmp_path / "activity.json")
    last_busy(activity, 0, 90.0)
    written = (tmp_path / "activity.json").stat().st_mtime_ns

    last_busy(activity, 59, 90.0)
    assert (tmp_path / "activity.json").stat().st_mtime_ns == written
    last_busy(activity, 60, 90.0)

    assert (tmp_path / "activity.json").stat().st_mtime_ns > written


@pytest.mark.parametrize("content", [None, b"nonsense"])
def test_without_a_readable_file_nothing_is_known(tmp_path, content):
    if content:
        (tmp_path / "activity.json").write_bytes(content)

    assert last_busy(Activity(tmp_path / "activity.json"), 0) is None
