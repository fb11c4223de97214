"""A slot from its start to its end, through every process that there is."""

import json
import signal
import urllib.request
from collections import Counter
from datetime import timedelta

import pytest

from reservations import clock
from reservations.models import AuditEntry, Booking, HostStatus, Notice, Report
from reservations.services import hosts
from reservations.services.actors import BERTH
from reservations.services.tokens import issue_token
from tests import build
from tests.host.kit import is_alive
from tests.waiting import until
from workers.host import status

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
SECOND = timedelta(seconds=1)


def people(host):
    """alice, bob and carol, who are the same on the host."""
    made = [build.user(name) for name in ("alice", "bob", "carol")]
    for person in made:
        build.account(person, host.row)
    return made


def book(host, index, owner, start, end):
    return build.booking(
        host.row.devices.get(uuid=host.uuids[index]), owner=owner, start=start, end=end
    )


def verbs(booking, **facts):
    """How often each fact stands in the booking's trail; ``facts`` narrow it to some, by person."""
    entries = AuditEntry.objects.filter(booking=booking, **facts)
    return Counter(entries.values_list("verb", flat=True))


def post(site, person, path, body):
    """REST as a script calls it; the answer's JSON."""
    _, token = issue_token(person, name="t", scopes=["book"], actor=BERTH, now=clock.now())
    request = urllib.request.Request(
        f"{site.url}/api/v1/{path}",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def test_a_slot_is_opened_ended_and_told_once(site, host):
    alice, _, _ = people(host)
    host.start_worker()
    host.enable()
    now = clock.now()
    booking = book(host, 0, alice, now + 3 * SECOND, now + 9 * SECOND)
    assert not host.granted("alice")
    until(lambda: host.granted("alice"), limit_s=20)
    job = host.job("alice")
    until(lambda: not is_alive(job), limit_s=30)
    assert not host.may_open("alice")
    until(lambda: {"gone", "ended"} <= verbs(booking).keys(), limit_s=30)
    told = verbs(booking)
    for verb in ("started", "opened", "closed", "signalled", "gone", "ended"):
        assert told[verb] == 1, told
    opened = AuditEntry.objects.get(booking=booking, verb="opened")
    assert opened.actor_label == f"host {host.name}"
    assert timedelta(0) <= opened.at - booking.start < 2 * SECOND
    until(lambda: Notice.objects.filter(user=alice, kind="ended").exists(), limit_s=20)
    until(lambda: not Notice.objects.filter(delivered_at=None).exists(), limit_s=20)


def test_a_booking_through_rest_reaches_the_host_at_once(site, host):
    """By the nudge: this host's heartbeat is a minute away."""
    alice, _, _ = people(host)
    host.start_worker()
    host.enable()
    slow = {**host.row.settings, "sample_s": 60}
    hosts.set_mode(host.row, mode="enforce", settings=slow, actor=BERTH, now=clock.now())
    until(lambda: _plan_says(host, b'"sample_s":60'), limit_s=30)
    post(site, alice, "bookings/", {"devices": [host.uuids[0]], "duration_s": 3600})
    until(lambda: host.granted("alice"), limit_s=10)


def test_an_intruder_is_stopped_and_a_release_ends_the_holders_job(site, host):
    alice, bob, _ = people(host)
    admin = build.operator("admin")
    host.start_worker()
    host.enable()
    made = post(site, alice, "bookings/", {"devices": [host.uuids[0]], "duration_s": 3600})
    booking = Booking.objects.get(pk=made["id"])
    until(lambda: host.granted("alice"), limit_s=20)

    intruding = host.job("bob")
    until(lambda: not is_alive(intruding), limit_s=30)
    until(lambda: Notice.objects.filter(user=admin, kind="intruder").exists(), limit_s=20)
    assert Notice.objects.filter(user=bob, kind="intruder").count() == 1
    assert "booked by you" in Notice.objects.get(user=alice, kind="intruder").text

    job = host.job("alice", profile="ignore-term")
    released = post(site, alice, f"bookings/{booking.pk}/release", {})
    assert released["phase"] == "ended"
    until(lambda: not host.granted("alice"), limit_s=5)
    until(lambda: not is_alive(job), limit_s=20)
    hers = {"after__unix_name": "alice"}
    until(lambda: {"killed", "gone"} <= verbs(booking, **hers).keys(), limit_s=30)
    until(lambda: "ended" in verbs(booking), limit_s=30)
    assert verbs(booking, after__unix_name="bob") == Counter(
        ["intruder", "warned", "signalled", "gone"]
    )
    assert verbs(booking, **hers) == Counter(
        ["opened", "closed", "overrun", "signalled", "killed", "gone"]
    )
    for verb in ("booked", "started", "released", "ended"):
        assert verbs(booking)[verb] == 1


def test_a_frozen_redis_holds_up_neither_bookings_nor_hosts(site, host):
    """The booking's nudge is lost; the host hears of it with its next heartbeat."""
    alice, _, _ = people(host)
    host.start_worker()
    host.enable()
    until(lambda: HostStatus.objects.get(host=host.row).last_seen, limit_s=30)
    site.send("redis", signal.SIGSTOP)
    began = clock.now()
    post(site, alice, "bookings/", {"devices": [host.uuids[0]], "duration_s": 3600})
    until(lambda: host.granted("alice"), limit_s=10)
    until(lambda: HostStatus.objects.get(host=host.row).last_seen > began + 5 * SECOND)
    assert site.health()["redis"].startswith("does not answer")
    site.send("redis", signal.SIGCONT)
    site.wait_until_healthy()
    until(lambda: Notice.objects.filter(user=alice, kind="started").exists(), limit_s=30)


def _plan_says(host, text):
    return text in b"".join(path.read_bytes() for path in host.state_dir.glob("plan*"))


def test_slots_go_on_while_everything_else_is_down_and_each_report_arrives_once(site, host):
    """Web, Redis, control worker and beat are stopped in the middle of a slot; the agent is killed
    meanwhile and starts again from its disk.
    """
    alice, bob, carol = people(host)
    host.start_worker()
    host.enable()
    now = clock.now()
    edge = now + 16 * SECOND
    first = book(host, 0, alice, now, edge)
    following = book(host, 0, bob, edge, edge + 3600 * SECOND)
    free = book(host, 1, carol, edge - SECOND, edge + 3600 * SECOND)
    until(lambda: host.granted("alice"), limit_s=10)
    job = host.job("alice", profile="ignore-term")
    until(lambda: "opened" in verbs(first), limit_s=10)
    assert clock.now() < edge - 5 * SECOND, "the machine is too slow for this test"

    site.stop("beat", "control", "web", "redis", by=signal.SIGKILL)
    site.stop("host", by=signal.SIGKILL)
    assert host.granted("alice")
    host.start_worker()

    until(lambda: host.granted("carol", 1), limit_s=30)
    assert clock.now() < edge + 2 * SECOND
    until(lambda: not host.granted("alice"), limit_s=10)
    until(lambda: not is_alive(job), limit_s=20)
    until(lambda: host.granted("bob"), limit_s=10)
    assert clock.now() < edge + 15 * SECOND

    site.start("redis", "web", "control", "beat")
    site.wait_until_healthy()
    until(lambda: "opened" in verbs(following), limit_s=60)
    until(lambda: "ended" in verbs(first), limit_s=60)
    until(lambda: status.read(host.state_dir).reports_waiting == 0, limit_s=30)
    for booking, expected in {
        first: ("started", "opened", "closed", "signalled", "killed", "gone", "ended"),
        following: ("started", "delayed", "opened"),
        free: ("started", "opened"),
    }.items():
        told = verbs(booking)
        for verb in expected:
            assert told[verb] == 1, (verb, told)
    repeated = Counter(Report.objects.values_list("host", "report_id"))
    assert max(repeated.values()) == 1
    assert HostStatus.objects.get(host=host.row).silent_since is None
