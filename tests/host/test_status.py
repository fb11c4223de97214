"""What `berth-host status` says in words."""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from reservations.core.enforcement import HostGrant
from workers.host import status

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
ROOT = Path(__file__).parents[2]


def given(device, booking):
    return HostGrant(
        booking=booking,
        device=device,
        uid=61001,
        unix_name="alice",
        start=NOON,
        end=NOON + timedelta(hours=1, microseconds=145_992),
    )


def test_it_says_who_has_which_device_until_when_and_whether_by_hand():
    device = status.DeviceStatus(
        uuid="GPU-a", index=3, model="A100", health="ok", gate="open to uid 61001", holders=()
    )
    grants = (given("GPU-a", 17), given("GPU-gone", None))
    seen = status.Status(host="gpu-01", at=NOON, mode="enforce", devices=(device,), grants=grants)

    words = status.in_words(seen, running=True, now=NOON)

    assert "\n  alice (61001) on 3 A100 until 2027-03-01 13:00:00 UTC, booking 17\n" in words
    assert "\n  alice (61001) on GPU-gone until 2027-03-01 13:00:00 UTC, given by hand\n" in words


def test_a_python_without_the_packages_is_named_in_a_sentence():
    done = subprocess.run(
        [sys.executable, "-S", "-m", "workers.host", "status"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert f"{sys.executable} has no msgspec" in done.stderr
    assert "requirements-host.txt" in done.stderr
    assert "Traceback" not in done.stderr
