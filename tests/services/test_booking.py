"""Booking: what is written, what is refused and with which words."""

from datetime import timedelta

import pytest

from reservations.core.errors import SlotTaken
from reservations.models import Allocation, AuditEntry
from reservations.services import bookings
from reservations.services.bookings import Wish
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = NOON - HOUR


def test_a_booking_holds_its_device_and_leaves_a_trail():
    alice, device = build.person(), build.device()
    booking = bookings.book(
        Wish(devices=(device.uuid,), start=NOON, duration=HOUR), actor=build.actor(alice), now=NOW
    )
    held = Allocation.objects.get(booking=booking)
    assert (held.device, held.start, held.end, held.holds) == (device, NOON, NOON + HOUR, True)
    assert AuditEntry.objects.get(booking=booking).verb == "booked"


def test_a_taken_slot_is_refused_with_blockers_and_alternatives():
    alice, bob, device = build.person(), build.person(), build.device()
    build.booking(device, owner=alice, start=NOON)
    with pytest.raises(SlotTaken) as taken:
        bookings.book(
            Wish(devices=(device.uuid,), start=NOON, duration=HOUR), actor=build.actor(bob), now=NOW
        )
    assert [one.owner for one in taken.value.blockers] == [alice.name]
    assert taken.value.alternatives[0].start == NOON + HOUR
