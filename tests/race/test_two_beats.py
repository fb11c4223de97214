"""Two beats, or two workers that take the same task: everything still happens once."""

import threading

import pytest
from django.db import connection

from reservations.models import AuditEntry, HostStatus, Notice, Report
from reservations.services import enforcement
from reservations.services.ending_notices import write_ending_notices
from reservations.services.milestones import pass_milestones
from reservations.services.usage import flag_silent_hosts, heartbeat
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, registered, report, samples

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.db_race]


def at_once(*works):
    """Run all at the same moment, each in its own thread and connection; their results."""
    results, barrier = [], threading.Barrier(len(works))

    def run(work):
        try:
            barrier.wait(10)
            results.append(work())
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(results) == len(works)
    return results


def test_milestones_are_passed_once_by_four_passes_at_once():
    devices = [build.device() for _ in range(10)]
    for device in devices:
        build.booking(device)
        build.booking(device, start=NOON + HOUR)
    now = NOON + HOUR
    passed = at_once(*[lambda: pass_milestones(now=now)] * 4)
    assert sum(passed) == AuditEntry.objects.count() == 30
    assert Notice.objects.count() == 30


def test_ending_notices_are_written_once_by_four_passes_at_once():
    for _ in range(10):
        build.booking()
    at_once(*[lambda: write_ending_notices(now=NOON + 50 * MINUTE)] * 4)
    assert Notice.objects.count() == 10


def test_one_batch_of_reports_delivered_four_times_at_once_is_stored_once():
    host, _ = registered()
    batch = [report("agent_started") for _ in range(20)]
    answers = at_once(*[lambda: enforcement.record(host, batch, received_at=NOON)] * 4)
    assert all(len(answer.stored) == 20 for answer in answers)
    assert Report.objects.count() == AuditEntry.objects.filter(verb="agent_started").count() == 20


def test_a_silent_host_is_flagged_once_by_four_looks_at_once():
    host, _ = registered()
    HostStatus.objects.filter(host=host).update(last_seen=NOON)
    build.operator()
    flagged = at_once(*[lambda: flag_silent_hosts(now=NOON + HOUR)] * 4)
    assert sum(flagged) == AuditEntry.objects.filter(verb="host_silent").count() == 1
    assert Notice.objects.filter(kind="host_silent").count() == 1


def test_one_heartbeat_of_a_silent_host_ends_the_silence_once_however_often_it_comes():
    host, _ = registered()
    HostStatus.objects.filter(host=host).update(last_seen=NOON, silent_since=NOON)
    at_once(*[lambda: heartbeat(host, samples(), now=NOON + HOUR)] * 4)
    assert AuditEntry.objects.filter(verb="host_back").count() == 1
