"""Root's word on a host while everything else is down, and what the trail says of it afterwards."""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings

from reservations import clock
from reservations.models import AuditEntry
from tests import build
from tests.waiting import until
from workers.host import status

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]


def berth_host(host, *words):
    told = {
        "PATH": os.environ["PATH"],
        "BERTH_STATE_DIR": str(host.state_dir),
        "BERTH_RUN_DIR": str(host.state_dir / "run"),
        "BERTH_VENDOR": "simulated",
        "BERTH_GATE": "record",
        "SUDO_USER": "olga",
    }
    done = subprocess.run(
        [sys.executable, "-m", "workers.host", *words],
        cwd=settings.ROOT,
        env=told,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done
    return done.stdout


def test_a_grant_and_a_hold_by_hand_count_while_all_is_down_and_are_audited_once_it_is_back(
    site, host
):
    alice, _, _ = (build.user(name) for name in ("alice", "bob", "carol"))
    build.account(alice, host.row)
    host.start_worker()
    host.enable()
    until(lambda: not host.may_open("bob"), limit_s=30)
    site.stop("beat", "control", "web", "redis", by=signal.SIGKILL)

    berth_host(host, "grant", "bob", "0", "--for", "4h")
    assert host.granted("bob")
    berth_host(host, "hold", "--for", "2h", "--reason", "fire drill")
    # Over a crash of the agent, and with one that knows the plan from its disk alone.
    site.stop("host", by=signal.SIGKILL)
    host.start_worker()
    until(lambda: status.is_running(host.state_dir), limit_s=30)
    until(lambda: status.read(host.state_dir).hold, limit_s=30)
    berth_host(host, "resume")
    assert host.granted("bob")
    assert AuditEntry.objects.filter(host=host.row, verb="granted_by_hand").count() == 0

    site.start("redis", "web", "control", "beat")
    site.wait_until_healthy()
    until(lambda: status.read(host.state_dir).reports_waiting == 0, limit_s=60)
    told = AuditEntry.objects.filter(
        host=host.row, verb__in=["granted_by_hand", "held", "resumed"]
    ).order_by("at")
    assert [one.verb for one in told] == ["granted_by_hand", "held", "resumed"]
    given, held, _ = told
    assert given.booking is None
    assert given.device.uuid == host.uuids[0]
    assert given.after["unix_name"] == "bob"
    assert all("by olga as root" in one.why for one in told)
    assert "fire drill" in held.why
    assert clock.now() - given.at < timedelta(minutes=5)
