"""What the one way to write makes of a database that waits, breaks deadlocks or refuses."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, connections, transaction

from reservations.core.errors import Busy, SlotTaken
from reservations.models import Allocation, Device, Team
from reservations.services import bookings, moving, writes
from reservations.services.bookings import Wish
from tests import build
from tests.build import NOON

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.db_race]
HOUR = timedelta(hours=1)
NOW = NOON - HOUR


class HeldLock:
    """Another connection that holds a device (on SQLite: the database) until it is told to let go."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._held, self._let_go = threading.Event(), threading.Event()
        self._pool = ThreadPoolExecutor(1)

    def __enter__(self) -> None:
        self._done = self._pool.submit(self._hold)
        assert self._held.wait(10)

    def __exit__(self, *_: object) -> None:
        self._let_go.set()
        self._done.result(10)
        self._pool.shutdown()

    def _hold(self) -> None:
        try:
            with transaction.atomic():
                list(Device.objects.select_for_update().filter(pk=self._device.pk))
                self._held.set()
                self._let_go.wait(10)
        finally:
            connections.close_all()


def test_a_lock_that_is_not_to_be_had_in_time_is_busy_and_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(moving, "EDGE_LOCK_LIMIT_S", 0.2)
    device, alice = build.device(), build.person()
    booking = build.booking(device, owner=alice)
    with HeldLock(device), pytest.raises(Busy):
        bookings.extend(booking.pk, actor=build.actor(alice), now=NOW, duration=HOUR)
    booking.refresh_from_db()
    assert booking.revision == 1


def test_the_short_limit_ends_with_its_transaction(monkeypatch):
    writes.run(lambda: None, now=NOW, lock_limit_s=0.2)
    query = "PRAGMA busy_timeout" if connection.vendor == "sqlite" else "SHOW lock_timeout"
    with connection.cursor() as cursor:
        cursor.execute(query)
        assert cursor.fetchone()[0] in {10_000, "10s"}


def deadlocked(times: int):
    """Work in which the database breaks a deadlock the first so many times."""
    attempts = []

    def work():
        attempts.append(1)
        if len(attempts) <= times:
            cause = type("Broken", (Exception,), {"sqlstate": "40P01"})()
            raise OperationalError("deadlock detected") from cause
        return len(attempts)

    return work


def test_a_deadlock_is_tried_once_more():
    assert writes.run(deadlocked(1), now=NOW) == 2


def test_a_second_deadlock_is_busy():
    with pytest.raises(Busy):
        writes.run(deadlocked(2), now=NOW)


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no row locks")
def test_a_real_deadlock_costs_nobody_their_booking():
    first, second = Team.objects.create(name="first"), Team.objects.create(name="second")
    both_hold, first_round_over = threading.Barrier(2), threading.Event()

    def work(order):
        list(Team.objects.select_for_update().filter(pk=order[0]))
        if not first_round_over.is_set():
            both_hold.wait(10)
            first_round_over.set()
        list(Team.objects.select_for_update().filter(pk=order[1]))
        return "done"

    def attempt(order):
        try:
            return writes.run(lambda: work(order), now=NOW)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        orders = [(first.pk, second.pk), (second.pk, first.pk)]
        assert list(pool.map(attempt, orders)) == ["done", "done"]


def test_any_other_database_error_stays_what_it_is():
    def work():
        raise OperationalError("no such table: nonsense")

    with pytest.raises(OperationalError, match="no such table"):
        writes.run(work, now=NOW)


def test_the_databases_own_refusal_of_an_overlap_is_slot_taken_with_everything_rolled_back():
    device = build.device()
    build.booking(device)
    owner = build.person()

    def work():
        build.account(owner, build.host("made-inside"))
        build.booking(device)

    with pytest.raises(SlotTaken):
        writes.run(work, now=NOW)
    assert Allocation.objects.count() == 1
    assert not owner.accounts.filter(host__isnull=False).exists()


def test_it_is_durable_so_that_no_caller_can_hold_its_locks_longer():
    wish = Wish(devices=(build.device().uuid,), start=NOON, duration=HOUR)
    alice = build.person()
    with transaction.atomic(), pytest.raises(RuntimeError):
        bookings.book(wish, actor=build.actor(alice), now=NOW)


def test_a_waiter_that_gave_up_does_not_open_the_lock_for_the_next(monkeypatch):
    monkeypatch.setattr(moving, "EDGE_LOCK_LIMIT_S", 0.2)
    device, alice = build.device(), build.person()
    booking = build.booking(device, owner=alice)
    with HeldLock(device):
        for _ in range(2):
            with pytest.raises(Busy):
                bookings.extend(booking.pk, actor=build.actor(alice), now=NOW, duration=HOUR)
    assert bookings.extend(booking.pk, actor=build.actor(alice), now=NOW, duration=HOUR).pk


def test_locks_end_with_the_transaction_that_took_them_also_when_it_fails():
    device, alice = build.device(), build.person()
    build.booking(device)
    wish = Wish(devices=(device.uuid,), start=NOON, duration=HOUR)
    with pytest.raises(SlotTaken):
        bookings.book(wish, actor=build.actor(alice), now=NOW)
    with HeldLock(device):
        pass
