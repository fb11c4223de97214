"""Announcing reaches everybody it should, and never holds anybody up, whatever state Redis is in."""

import os
import signal
import statistics
import threading
import time
from datetime import timedelta

import pytest
import redis
from channels.layers import get_channel_layer
from django.db import transaction

from reservations import announce, clock
from reservations.core import wire
from reservations.models import Booking
from reservations.services import bookings, holds
from reservations.services.bookings import Wish
from tests import build, servers
from tests.build import NOON

HOUR = timedelta(hours=1)
NOW = NOON - HOUR


@pytest.fixture
def own_redis(settings):
    """A Redis of this test alone, so that it can be frozen."""
    announce.courier.wait_until_idle(30)
    with servers.redis_server() as url:
        settings.REDIS_URL = url
        backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
        settings.CHANNEL_LAYERS = {"default": {"BACKEND": backend, "CONFIG": {"hosts": [url]}}}
        _forget_connections()
        yield redis.Redis.from_url(url)
        announce.courier.wait_until_idle(30)
    _forget_connections()


def _forget_connections():
    announce._broker.cache_clear()
    announce._line_to.cache_clear()


class Listener:
    """Hears what is sent to groups, as a browser's consumer would."""

    def __init__(self, connection, *groups):
        self._pubsub = connection.pubsub()
        self._pubsub.subscribe(*(f"asgi__group__{group}" for group in groups))
        for _ in groups:
            self._pubsub.get_message(timeout=5)

    def next(self):
        message = self._pubsub.get_message(timeout=5)
        group = message["channel"].decode().removeprefix("asgi__group__")
        return group, get_channel_layer().deserialize(message["data"])


def book(device, person, start=NOON, **fields):
    wish = Wish(devices=(device.uuid,), start=start, duration=HOUR, **fields)
    return bookings.book(wish, actor=build.actor(person), now=NOW)


@pytest.mark.django_db(transaction=True)
class TestWhoHears:
    def test_one_message_says_the_booking_and_who_may_read_it_whole(self, own_redis):
        alice, device = build.person("alice"), build.device()
        listener = Listener(own_redis, "calendar")
        booking = book(device, alice, purpose="secret plan")
        _, event = listener.next()
        assert event["type"] == "booking.changed"
        assert (event["row"]["id"], event["row"]["revision"]) == (booking.pk, 1)
        assert event["row"]["purpose"] == "secret plan"
        assert event["readers"] == [alice.pk]

    def test_people_and_teammates_are_among_the_readers(self, own_redis):
        alice, bob, mate = build.person(), build.person("bob"), build.person()
        build.person("stranger")
        team = build.team(alice, mate)
        listener = Listener(own_redis, "calendar")
        book(build.device(), alice, people=("bob",), team=team.name, purpose="ours")
        assert listener.next()[1]["readers"] == sorted([alice.pk, bob.pk, mate.pk])

    def test_the_hosts_are_nudged_on_their_own_queue_with_their_own_prefix(self, own_redis):
        device = build.device(build.host("sim-a"))
        book(device, build.person(), start=NOW)
        assert announce.courier.wait_until_idle(10)
        key = f"host.sim-a:{wire.host_queue('sim-a')}"
        assert own_redis.llen(key) == 1
        assert wire.NUDGE.encode() in own_redis.lindex(key, 0)

    def test_a_host_that_is_held_or_resumed_is_nudged_and_open_pages_hear_of_it(self, own_redis):
        build.host("sim-a")
        admin = build.actor(build.operator())
        listener = Listener(own_redis, "calendar")
        now = clock.now()
        holds.hold(["sim-a"], reason="new driver", until=now + HOUR, actor=admin, now=now)
        assert listener.next()[1]["row"]["holds"]["sim-a"]["reason"] == "new driver"
        holds.resume(["sim-a"], actor=admin, now=now)
        assert listener.next()[1] == {"type": "hosts.changed", "row": {"holds": {}}}
        assert announce.courier.wait_until_idle(10)
        assert own_redis.llen(f"host.sim-a:{wire.host_queue('sim-a')}") == 2

    def test_a_host_is_not_woken_for_what_it_will_ask_for_long_before_it_begins(self, own_redis):
        device = build.device(build.host("sim-a"))
        book(device, build.person(), start=NOW + HOUR)
        assert announce.courier.wait_until_idle(10)
        assert own_redis.keys("host.sim-a:*") == []

    def test_a_change_that_is_rolled_back_is_never_heard_of(self, own_redis):
        listener = Listener(own_redis, "calendar")
        booking = build.booking(build.device())
        with transaction.atomic():
            announce.booking_changed(booking)
            transaction.set_rollback(True)
        announce.booking_changed(build.booking(build.device()))
        assert listener.next()[1]["row"]["id"] != booking.pk

    def test_a_notice_reaches_its_person_and_nobody_else(self, own_redis):
        alice, bob = build.person("alice"), build.person("bob")
        listeners = [Listener(own_redis, f"person.{one.pk}") for one in (alice, bob)]
        for person in (alice, bob):
            announce.notice(person.pk, {"text": f"For {person.username}."})
        for person, listener in zip((alice, bob), listeners, strict=True):
            group, message = listener.next()
            assert group == f"person.{person.pk}"
            assert message == {"type": "notice.new", "row": {"text": f"For {person.username}."}}


@pytest.mark.django_db(transaction=True)
def test_a_frozen_redis_slows_no_booking_by_more_than_fifty_milliseconds(own_redis):
    device, alice = build.device(), build.person()
    pid = own_redis.info("server")["process_id"]

    def duration_s(hour):
        began = time.perf_counter()
        book(device, alice, start=NOON + hour * HOUR)
        return time.perf_counter() - began

    usual = statistics.median(duration_s(hour) for hour in range(10))
    os.kill(pid, signal.SIGSTOP)
    try:
        frozen = [duration_s(hour) for hour in range(10, 20)]
    finally:
        os.kill(pid, signal.SIGCONT)
    assert statistics.median(frozen) < usual + 0.05
    assert max(frozen) < usual + 0.25
    assert Booking.objects.count() == 20


@pytest.mark.django_db(transaction=True)
def test_after_a_redis_has_thawed_announcements_go_on(own_redis):
    pid = own_redis.info("server")["process_id"]
    os.kill(pid, signal.SIGSTOP)
    try:
        book(build.device(), build.person())
        assert announce.courier.wait_until_idle(20)
    finally:
        os.kill(pid, signal.SIGCONT)
    listener = Listener(own_redis, "calendar")
    booking = book(build.device(), build.person())
    assert listener.next()[1]["row"]["id"] == booking.pk


class TestCourier:
    def test_letters_are_delivered_in_order(self):
        courier, seen = announce.Courier(), []
        for number in range(100):
            courier.post(lambda _, number=number: seen.append(number))
        assert courier.wait_until_idle(10)
        assert seen == list(range(100))

    def test_one_that_fails_does_not_hold_up_the_next(self):
        courier, seen = announce.Courier(), []
        courier.post(lambda _: 1 / 0)
        courier.post(lambda _: seen.append("next"))
        assert courier.wait_until_idle(10)
        assert seen == ["next"]

    def test_when_too_many_wait_the_oldest_is_dropped_and_posting_never_blocks(self, monkeypatch):
        monkeypatch.setattr(announce, "QUEUE_LENGTH", 3)
        courier, seen, go_on, begun = announce.Courier(), [], threading.Event(), threading.Event()
        courier.post(lambda _: (begun.set(), go_on.wait(10)))
        assert begun.wait(10)
        for number in range(10):
            courier.post(lambda _, number=number: seen.append(number))
        go_on.set()
        assert courier.wait_until_idle(10)
        assert seen == [7, 8, 9]

    @pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
    def test_hints_about_one_thing_stand_for_each_other_and_the_last_is_heard(self):
        courier, seen, began = announce.Courier(), [], time.monotonic()
        for number in range(100):
            courier.hint("a", lambda _, number=number: seen.append(number), every_s=0.05)
        courier.hint("b", lambda _: seen.append("b"), every_s=0.05)
        assert courier.wait_until_idle(10)
        assert seen.count("b") == 1
        # The first at once, one for each span that passed, and one for those that waited.
        assert len(seen) <= 3 + (time.monotonic() - began) / 0.05

        courier.hint("a", lambda _: seen.append("last"), every_s=0.05)
        assert courier.wait_until_idle(10)
        assert seen[-1] == "last"

    def test_after_a_fork_the_child_has_a_thread_of_its_own(self):
        courier = announce.Courier()
        courier.post(lambda _: None)
        assert courier.wait_until_idle(10)
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            courier.post(lambda _: os.write(write_end, b"delivered"))
            os._exit(0 if courier.wait_until_idle(10) else 1)
        os.close(write_end)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert os.read(read_end, 100) == b"delivered"
        os.close(read_end)
