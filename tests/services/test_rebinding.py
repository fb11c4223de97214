"""Other devices for bookings whose own are gone; nothing is dropped silently."""

from datetime import timedelta

import pytest

from reservations.core.errors import Forbidden, Invalid, NotFound, NotPossibleNow
from reservations.models import Allocation, AuditEntry, Device, Notice
from reservations.services import bookings, devices, rebinding
from reservations.services.actors import BERTH
from reservations.services.bookings import Change
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
NOW = NOON - HOUR
LOST_AT = NOW - timedelta(minutes=10)


def lose(device, at=LOST_AT):
    device.state, device.state_since = Device.State.LOST, at
    device.save()


def devices_of(booking):
    return {one.device for one in Allocation.objects.filter(booking=booking, holds=True)}


class TestRebind:
    def test_an_unpinned_booking_gets_another_device_of_the_same_host_and_model(self):
        host = build.host()
        gone, spare = build.device(host), build.device(host)
        build.device(host, model="Other")
        build.device()
        booking = build.booking(gone, owner=build.person())
        rebound = bookings.rebind(booking.pk, {gone.uuid}, actor=BERTH, now=NOW)
        assert devices_of(booking) == {spare}
        assert (rebound.revision, rebound.pinned) == (2, False)
        assert AuditEntry.objects.get().verb == "rebound"
        assert Notice.objects.get().user == booking.owner

    def test_the_devices_that_are_still_there_stay(self):
        host = build.host()
        gone, kept, spare = build.device(host), build.device(host), build.device(host)
        booking = build.booking(gone, kept)
        bookings.rebind(booking.pk, {gone.uuid}, actor=BERTH, now=NOW)
        assert devices_of(booking) == {kept, spare}

    def test_one_that_is_booked_then_is_not_taken(self):
        host = build.host()
        gone, busy = build.device(host), build.device(host)
        booking = build.booking(gone)
        build.booking(busy, start=NOON + HOUR / 2)
        with pytest.raises(NotPossibleNow, match="is free for the whole time"):
            bookings.rebind(booking.pk, {gone.uuid}, actor=BERTH, now=NOW)
        assert devices_of(booking) == {gone}

    @pytest.mark.parametrize(
        ("fields", "now"),
        [({"pinned": True}, NOW), ({}, NOON), ({}, NOON + HOUR), ({"state": "cancelled"}, NOW)],
    )
    def test_pinned_and_begun_ones_stay_where_they_are(self, fields, now):
        host = build.host()
        gone = build.device(host)
        build.device(host)
        booking = build.booking(gone, **fields)
        with pytest.raises(NotPossibleNow):
            bookings.rebind(booking.pk, {gone.uuid}, actor=BERTH, now=now)

    def test_one_that_began_during_the_wait_for_its_lock_stays_too(self, monkeypatch):
        monkeypatch.setattr(rebinding, "ticking", lambda now: lambda: now + 4 * SECOND)
        host = build.host()
        gone = build.device(host)
        build.device(host)
        booking = build.booking(gone)
        with pytest.raises(NotPossibleNow, match="has not begun"):
            bookings.rebind(booking.pk, {gone.uuid}, actor=BERTH, now=NOON - 2 * SECOND)

    def test_only_operators_choose_devices_for_others(self):
        device = build.device()
        booking = build.booking(device)
        with pytest.raises(Forbidden):
            bookings.rebind(booking.pk, {device.uuid}, actor=build.actor(booking.owner), now=NOW)

    def test_a_rebound_booking_can_still_be_moved_and_released(self):
        host = build.host()
        gone, spare = build.device(host), build.device(host)
        booking = build.booking(gone, owner=build.person())
        actor = build.actor(booking.owner)
        bookings.rebind(booking.pk, {gone.uuid}, actor=BERTH, now=NOW)
        bookings.move(booking.pk, Change(end=NOON + 2 * HOUR), actor=actor, now=NOW)
        bookings.release(booking.pk, actor=actor, now=NOON + HOUR)
        row = Allocation.objects.get(booking=booking)
        assert (row.device, row.start, row.end) == (spare, NOON, NOON + HOUR)


class TestLostDevices:
    def test_after_ten_minutes_upcoming_bookings_get_other_devices(self):
        host = build.host()
        gone, spare = build.device(host), build.device(host)
        booking = build.booking(gone)
        lose(gone)
        assert bookings.rebind_lost_devices(now=NOW) == 1
        assert devices_of(booking) == {spare}
        assert bookings.rebind_lost_devices(now=NOW) == 0

    def test_before_that_it_may_come_back(self):
        host = build.host()
        gone = build.device(host)
        build.device(host)
        booking = build.booking(gone)
        lose(gone, at=LOST_AT + timedelta(seconds=1))
        assert bookings.rebind_lost_devices(now=NOW) == 0
        assert devices_of(booking) == {gone}

    def test_what_cannot_be_moved_is_flagged_once_to_owner_and_operators(self):
        operator = build.operator()
        gone = build.device()
        booking = build.booking(gone, pinned=True)
        lose(gone)
        for _ in range(3):
            bookings.rebind_lost_devices(now=NOW)
        assert devices_of(booking) == {gone}
        entry = AuditEntry.objects.get()
        assert (entry.verb, entry.booking) == ("flagged", booking)
        assert {one.user for one in Notice.objects.all()} == {booking.owner, operator}

    def test_past_bookings_are_left_alone(self):
        gone = build.device()
        build.booking(gone, start=NOON - 5 * HOUR)
        lose(gone)
        bookings.rebind_lost_devices(now=NOW)
        assert not AuditEntry.objects.exists()


class TestRetiring:
    def test_nobody_books_it_any_more_and_its_bookings_are_moved(self):
        host = build.host()
        old, spare = build.device(host), build.device(host)
        booking = build.booking(old)
        past = build.booking(old, start=NOON - 5 * HOUR)
        devices.retire_device(old.uuid, actor=build.actor(build.operator()), now=NOW)
        old.refresh_from_db()
        assert (old.state, old.bookable, old.state_since) == ("retired", False, NOW)
        assert devices_of(booking) == {spare}
        assert devices_of(past) == {old}

    def test_only_operators_do(self):
        with pytest.raises(Forbidden):
            devices.retire_device(build.device().uuid, actor=build.actor(build.person()), now=NOW)

    def test_what_does_not_exist_is_not_found(self):
        with pytest.raises(NotFound):
            devices.retire_device("GPU-x", actor=BERTH, now=NOW)


class TestReplacing:
    @pytest.fixture
    def cards(self):
        host = build.host()
        old = build.device(host)
        new = build.device(host, bookable=False, managed_by=Device.ManagedBy.NONE)
        return old, new

    def test_all_bookings_move_to_the_new_card_pinned_or_not(self, cards):
        old, new = cards
        pinned = build.booking(old, pinned=True)
        other = build.booking(old, start=NOON + HOUR)
        assert devices.replace_device(old.uuid, new.uuid, actor=BERTH, now=NOW) == []
        assert devices_of(pinned) == devices_of(other) == {new}
        new.refresh_from_db()
        old.refresh_from_db()
        assert (new.bookable, new.managed_by) == (True, Device.ManagedBy.BERTH)
        assert (old.state, old.bookable) == ("retired", False)

    def test_a_running_booking_goes_on_there_and_its_past_stays(self, cards):
        old, new = cards
        booking = build.booking(old, owner=build.person())
        now = NOON + HOUR / 2
        devices.replace_device(old.uuid, new.uuid, actor=BERTH, now=now)
        rows = Allocation.objects.filter(booking=booking).order_by("start")
        assert [(one.device, one.start, one.end) for one in rows] == [
            (old, NOON, now),
            (new, now, NOON + HOUR),
        ]

    def test_and_can_be_extended_and_released_there(self, cards):
        old, new = cards
        booking = build.booking(old, owner=build.person())
        actor = build.actor(booking.owner)
        half = NOON + HOUR / 2
        devices.replace_device(old.uuid, new.uuid, actor=BERTH, now=half)
        bookings.extend(booking.pk, actor=actor, now=half, duration=HOUR)
        bookings.release(booking.pk, actor=actor, now=NOON + HOUR)
        rows = Allocation.objects.filter(booking=booking).order_by("start")
        assert [(one.device, one.start, one.end) for one in rows] == [
            (old, NOON, half),
            (new, half, NOON + HOUR),
        ]

    def test_what_clashes_there_is_flagged(self, cards):
        old, new = cards
        booking = build.booking(old)
        build.booking(new)
        assert devices.replace_device(old.uuid, new.uuid, actor=BERTH, now=NOW) == [booking.pk]
        assert AuditEntry.objects.get(verb="flagged").booking == booking

    def test_a_card_of_another_host_or_itself_is_no_replacement(self, cards):
        old, _ = cards
        for by in (old, build.device()):
            with pytest.raises(Invalid):
                devices.replace_device(old.uuid, by.uuid, actor=BERTH, now=NOW)
