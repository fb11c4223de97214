"""Heartbeats: what is noted, what live pages get, and what happens when there are none."""

import socket
import time

import msgspec
import pytest
import redis
from django.conf import settings as site

from reservations import livestore
from reservations.core.errors import Forbidden
from reservations.core.wire import HealthProblem
from reservations.models import AuditEntry, Device, HostStatus, Notice
from reservations.services import plans, usage
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, SECOND, registered, sample, samples

pytestmark = pytest.mark.django_db


@pytest.fixture
def host():
    return registered("gpu1")[0]


@pytest.fixture
def device(host):
    return build.device(host, uuid="GPU-a", index=0)


@pytest.fixture
def live(redis_url):
    """The Redis of the tests, empty."""
    client = redis.Redis.from_url(redis_url)
    client.flushdb()
    start_anew()
    yield client
    client.close()
    start_anew()


def start_anew():
    """Forget connections and failures, as a new process would."""
    livestore._client.cache_clear()
    livestore.breaker.reset()


def person(name, host, **fields):
    made = build.user(name, **fields)
    build.account(made, host)
    return made


def status(host):
    return HostStatus.objects.get(host=host)


def test_a_heartbeat_is_noted_and_answered_with_what_to_look_at(host, live):
    said = samples(
        at=NOON, clock_offset_s=0.1, health=(HealthProblem(code="tls", text="Expires soon."),)
    )
    answer = usage.heartbeat(host, said, now=NOON)
    assert answer.plan_etag == plans.plan_for(host, now=NOON).etag
    assert (answer.server_time, answer.watched) == (NOON, False)
    noted = status(host)
    assert (noted.last_seen, noted.mode, noted.agent_version) == (NOON, "enforce", "1")
    assert noted.health == [{"code": "tls", "text": "Expires soon."}]


def test_hosts_hear_whether_somebody_watches(host, device, live):
    livestore.mark_watched()
    assert usage.heartbeat(host, samples(sample("GPU-a")), now=NOON).watched


def test_a_tick_reaches_live_pages_as_one_text_with_names_and_verdict(host, device, live):
    alice = person("alice", host, display_name="Alice A.")
    booking = build.booking(device, owner=alice)
    listener = live.pubsub(ignore_subscribe_messages=True)
    listener.subscribe(livestore.CHANNEL)
    listener.get_message(timeout=1)
    said = sample("GPU-a", "alice", "bob", at=NOON + MINUTE, memory_used_bytes=3, power_w=80.5)
    usage.heartbeat(host, samples(said), now=NOON + MINUTE)
    message = listener.get_message(timeout=2)
    listener.close()
    text = msgspec.json.decode(message["data"])
    assert text["type"] == "devices"
    (value,) = text["devices"]
    assert value["verdict"] == {
        "code": "foreign_use",
        "text": "Used by bob, booked by Alice A.",
        "since": None,
        "who": ["bob"],
    }
    assert value["booking"] == {
        "id": booking.pk,
        "owner": {"username": "alice", "name": "Alice A."},
        "end": "2027-03-01T13:00:00Z",
    }
    assert [one["owner"] for one in value["processes"]] == ["Alice A.", "bob"]
    assert (value["at"], value["memory_used_bytes"]) == ("2027-03-01T12:01:00Z", 3)


def test_a_site_that_hides_owners_hides_them_in_live_values_too(host, device, live, settings):
    settings.SHOW_OWNERS = False
    person("bob", host, display_name="Bob B.")
    build.booking(device, owner=person("alice", host, display_name="Alice A."))
    usage.heartbeat(host, samples(sample("GPU-a", "alice", "bob")), now=NOON)
    (text,) = live.hvals("berth:live:latest")
    assert b"foreign_use" in text
    for name in (b"alice", b"Alice", b"bob", b"Bob"):
        assert name not in text


def test_a_page_that_opens_gets_the_newest_values_and_ten_minutes(host, device, live):
    for minute in range(15):
        now = NOON + minute * MINUTE
        reading = sample("GPU-a", at=now, utilization_percent=float(minute))
        usage.heartbeat(host, samples(reading), now=now)
    (value,) = livestore.snapshot(now=NOON + 14 * MINUTE)
    assert value["utilization_percent"] == 14
    assert [percent for _, percent in value["ring"]] == [float(n) for n in range(4, 15)]
    assert livestore.latest(["GPU-a", "GPU-none"]).keys() == {"GPU-a"}


def test_a_gap_in_the_ring_stays_a_gap(host, device, live):
    usage.heartbeat(host, samples(sample("GPU-a", utilization_percent=None)), now=NOON)
    (value,) = livestore.snapshot(now=NOON)
    assert value["ring"] == [[int(NOON.timestamp()), None]]


def test_a_device_without_a_reading_is_unknown_and_not_free(host, device, live):
    usage.heartbeat(host, samples(), now=NOON)
    (value,) = livestore.snapshot(now=NOON)
    assert (value["verdict"]["code"], value["at"]) == ("no_data", None)


def test_retired_devices_disappear_from_live_pages(host, device, live):
    build.device(host, uuid="GPU-b")
    usage.heartbeat(host, samples(sample("GPU-a")), now=NOON)
    Device.objects.filter(uuid="GPU-a").update(state="retired")
    usage.heartbeat(host, samples(), now=NOON)
    assert [value["uuid"] for value in livestore.snapshot(now=NOON)] == ["GPU-b"]


def test_readings_of_another_hosts_device_are_forbidden_and_change_nothing(host, live):
    build.device(uuid="GPU-theirs")
    with pytest.raises(Forbidden):
        usage.heartbeat(host, samples(sample("GPU-theirs")), now=NOON)
    assert status(host).last_seen is None
    assert livestore.snapshot(now=NOON) == []


def test_operators_are_told_once_a_day_of_a_clock_that_is_off(host, live):
    """Slots go by the server's clock; the host itself shows the skew as a problem of its health."""
    admin = build.operator()
    for offset_s in (0.5, -120.0, -121.0):
        usage.heartbeat(host, samples(clock_offset_s=offset_s), now=NOON)
    assert status(host).clock_offset_s == -121.0
    assert Notice.objects.get(user=admin).text.startswith("The clock of gpu1 is -120.0 s off")


@pytest.mark.parametrize("listens", [True, False], ids=["frozen", "dead"])
def test_a_redis_that_does_not_answer_costs_half_a_second_once(listens, live, monkeypatch):
    """A frozen one still accepts connections: the kernel does that."""
    devices = [{"uuid": "GPU-a", "utilization_percent": 1.0}]
    with socket.socket() as redis_socket:
        redis_socket.bind(("127.0.0.1", 0))
        if listens:
            redis_socket.listen()
        address = f"redis://127.0.0.1:{redis_socket.getsockname()[1]}/0"
        monkeypatch.setattr(site, "REDIS_URL", address)
        start_anew()
        began = time.monotonic()
        watched = [livestore.publish(devices, now=NOON) for _ in range(20)]
        assert time.monotonic() - began < 0.9
    assert watched == [False] * 20


def test_a_heartbeat_is_noted_and_answered_without_redis(host, device, live, monkeypatch):
    monkeypatch.setattr(site, "REDIS_URL", "redis://127.0.0.1:1/0")
    start_anew()
    answer = usage.heartbeat(host, samples(sample("GPU-a")), now=NOON)
    assert (answer.watched, status(host).last_seen) == (False, NOON)
    assert livestore.snapshot(now=NOON) == []


def test_a_silent_host_is_flagged_once_and_its_return_is_told(host, device, live):
    admin = build.operator()
    usage.heartbeat(host, samples(sample("GPU-a")), now=NOON)
    assert usage.flag_silent_hosts(now=NOON + 59 * SECOND) == 0
    for second in (60, 65, 3600):
        usage.flag_silent_hosts(now=NOON + second * SECOND)
    assert status(host).silent_since == NOON + MINUTE
    (value,) = livestore.snapshot(now=NOON + MINUTE)
    assert value["verdict"]["code"] == "no_data"
    usage.heartbeat(host, samples(), now=NOON + HOUR)
    assert status(host).silent_since is None
    assert usage.flag_silent_hosts(now=NOON + HOUR) == 0
    verbs = AuditEntry.objects.filter(host=host).order_by("id").values_list("verb", flat=True)
    assert list(verbs) == ["host_added", "host_silent", "host_back"]
    kinds = Notice.objects.filter(user=admin).order_by("id").values_list("kind", flat=True)
    assert list(kinds) == ["host_silent", "host_back"]


def test_a_host_that_was_never_heard_of_is_not_silent(host):
    assert usage.flag_silent_hosts(now=NOON + HOUR) == 0
