"""The preview of a switch, from what a host's heartbeat told and from what is booked there."""

from datetime import timedelta

import pytest
import redis

from reservations import livestore
from reservations.core.wire import ProcessUse, Sample
from reservations.models import Device
from reservations.services import holds, previews, usage
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, registered, samples

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def quiet_redis(redis_url):
    livestore.breaker.reset()
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        yield
        client.flushdb()


@pytest.fixture
def host():
    return registered("gpu1", mode="observe")[0]


@pytest.fixture
def device(host):
    return build.device(host, uuid="GPU-a", index=0)


def use(pid, name="bob", uid=1001, *, hours=5.0, **fields):
    started = NOON - timedelta(hours=hours)
    return ProcessUse(pid=pid, uid=uid, unix_name=name, **{"started": started, **fields})


def beat(host, *processes, uuid="GPU-a", at=NOON, readable=True):
    one = Sample(uuid=uuid, at=at, processes=processes if readable else None)
    usage.heartbeat(host, samples(one, at=at), now=at)


def lines(host, now=NOON):
    return previews.of_host(host, now=now).lines


def test_it_names_the_person_by_both_names_with_processes_and_beginning(host, device):
    bob = build.user("robert", display_name="Bob Okafor")
    build.account(bob, host, unix_name="bob")
    beat(host, use(11, hours=2), use(12, hours=7))
    (line,) = lines(host)
    assert (line.person, line.unix_name, line.device) == ("Bob Okafor", "bob", device)
    assert (line.pids, line.since) == ((11, 12), NOON - 7 * HOUR)
    assert (line.at, line.why) == (NOON + 72 * HOUR, "time_up")


def test_names_are_there_for_operators_also_where_the_site_hides_them(host, device, settings):
    settings.SHOW_OWNERS = False
    beat(host, use(11))
    assert [line.unix_name for line in lines(host)] == ["bob"]


def test_it_says_who_needs_the_device_and_when(host, device):
    alice = build.user("alice", display_name="Alice Weber")
    build.account(alice, host)
    booking = build.booking(device, owner=alice, start=NOON + 3 * HOUR)
    beat(host, use(11))
    (line,) = lines(host)
    assert (line.at, line.booking, line.needed_by) == (NOON + 3 * HOUR, booking.pk, "Alice Weber")


def test_whoever_has_booked_the_device_now_is_not_counted_and_comes_last(host, device):
    bob = build.user("bob")
    build.account(bob, host)
    other = build.device(host, uuid="GPU-b", index=1)
    build.booking(device, owner=bob, start=NOON - HOUR, hours=2)
    beat(host, use(11))
    beat(host, use(12, "eve", 1002), uuid=other.uuid)
    found = previews.of_host(host, now=NOON)
    assert [(one.unix_name, one.booked, one.why) for one in found.lines] == [
        ("eve", False, "time_up"),
        ("bob", True, "ended"),
    ]
    assert found.people == 1


def test_the_hosts_own_settings_count(host, device):
    host.settings = {"adopt_h": 1, "exempt_uids": [1002]}
    host.save()
    beat(host, use(11), use(12, "eve", 1002))
    (line,) = lines(host)
    assert (line.unix_name, line.at) == ("bob", NOON + HOUR)


@pytest.mark.parametrize(
    "spared", [{"uid": 0}, {"graphics_only": True}, {"protected": "the display server"}]
)
def test_whoever_is_never_stopped_is_not_named(host, device, spared):
    beat(host, use(11, **{"uid": 1001, **spared}))
    assert lines(host) == ()


def test_processes_without_a_person_are_told_apart(host, device):
    beat(host, use(11), use(12, None, None))
    found = previews.of_host(host, now=NOON)
    assert ([line.pids for line in found.lines], found.unnamed) == ([(11,)], (12,))


def test_a_container_is_named_by_its_id(host, device):
    beat(host, use(11, container="c0ffee" * 4))
    (line,) = lines(host)
    assert (line.container, line.at) == ("c0ffee" * 4, None)


def test_devices_that_berth_does_not_manage_are_left_out(host, device):
    Device.objects.update(managed_by="slurm")
    beat(host, use(11))
    found = previews.of_host(host, now=NOON)
    assert (found.lines, found.unread) == ((), ())


def test_what_cannot_be_read_is_said_and_not_taken_for_free(host, device):
    assert previews.of_host(host, now=NOON).unread == (device,)
    beat(host, readable=False)
    found = previews.of_host(host, now=NOON)
    assert (found.unread, found.data_at) == ((device,), None)


def test_data_of_a_host_that_fell_silent_grows_old(host, device):
    beat(host, use(11))
    assert previews.of_host(host, now=NOON).age is None
    usage.flag_silent_hosts(now=NOON + 2 * MINUTE)
    found = previews.of_host(host, now=NOON + 12 * MINUTE)
    assert found.age == 12 * MINUTE
    assert [line.unix_name for line in found.lines] == ["bob"]


def test_its_key_is_the_same_until_somebody_comes_or_a_reason_changes(host, device):
    beat(host, use(11))
    key = previews.of_host(host, now=NOON).key
    beat(host, use(11), use(13), at=NOON + MINUTE)
    assert previews.of_host(host, now=NOON + MINUTE).key == key
    beat(host, use(11), use(14, "eve", 1002), at=NOON + MINUTE)
    assert previews.of_host(host, now=NOON + MINUTE).key != key
    alice = build.person("alice")
    build.booking(device, owner=alice, start=NOON + HOUR)
    beat(host, use(11), at=NOON + MINUTE)
    assert previews.of_host(host, now=NOON + MINUTE).key != key


def test_a_held_host_is_foreseen_as_if_it_were_not(host, device):
    admin = build.actor(build.operator())
    holds.hold(["gpu1"], reason="x", until=NOON + HOUR, actor=admin, now=NOON)
    beat(host, use(11))
    assert lines(host)[0].at == NOON + 72 * HOUR
