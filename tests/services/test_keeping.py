"""Bookings that are kept while nobody else has booked: extended in their last minute."""

import threading

import pytest
from django.db import connection

from reservations.models import Allocation, AuditEntry, Booking, Device, Notice
from reservations.services import bookings
from reservations.services.keeping import keep_free_bookings
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, SECOND

END = NOON + HOUR


@pytest.fixture
def device(db):
    return build.device(build.host("gpu1"), index=0)


@pytest.fixture
def alice(db):
    return build.person("alice", display_name="Alice")


def kept(*devices, owner, **fields):
    return build.booking(*devices, owner=owner, keep_if_free=True, **fields)


def end_of(booking):
    booking.refresh_from_db()
    ends = set(Allocation.objects.filter(booking=booking).values_list("end", flat=True))
    assert ends == {booking.end}
    return booking.end


def told(user):
    return [row.text for row in Notice.objects.filter(user=user).order_by("id")]


def test_it_is_extended_in_its_last_minute_and_the_trail_says_why(device, alice):
    booking = kept(device, owner=alice)
    assert keep_free_bookings(now=END - 61 * SECOND) == 0
    assert keep_free_bookings(now=END - 60 * SECOND) == 1
    assert end_of(booking) == booking.planned_end == END + 15 * MINUTE
    entry = AuditEntry.objects.get()
    assert (entry.verb, entry.actor, entry.actor_label) == ("extended", None, "berth")
    assert entry.why == "kept: nobody else has booked"
    assert told(alice) == []


def test_it_is_kept_again_and_again_until_somebody_follows(device, alice):
    booking, bob = kept(device, owner=alice), build.user(display_name="Bob")
    build.booking(device, owner=bob, start=END + 45 * MINUTE)
    for quarter_minute in range(8 * 60):
        keep_free_bookings(now=NOON + quarter_minute * 15 * SECOND)
    assert end_of(booking) == END + 45 * MINUTE
    assert AuditEntry.objects.filter(verb="extended").count() == 3
    assert told(alice) == [
        "Your booking of Test 80GB · 0 on gpu1 ends at 13:45 and cannot be kept: "
        "a booking of Bob begins at 13:45."
    ]


def test_a_name_that_the_site_hides_is_not_told(device, alice, settings):
    settings.SHOW_OWNERS = False
    kept(device, owner=alice)
    build.booking(device, owner=build.user(display_name="Bob"), start=END + 5 * MINUTE)
    keep_free_bookings(now=END - MINUTE)
    (text,) = told(alice)
    assert text.endswith("a booking of somebody else begins at 13:05.")


def test_a_pass_missed_at_first_is_made_up_for_until_the_last_seconds(device, alice):
    booking = kept(device, owner=alice)
    assert keep_free_bookings(now=END - 5 * SECOND) == 0
    assert keep_free_bookings(now=END - 6 * SECOND) == 1
    assert end_of(booking) == END + 15 * MINUTE


def test_what_has_ended_is_history(device, alice):
    booking = kept(device, owner=alice)
    assert keep_free_bookings(now=END) == keep_free_bookings(now=END + HOUR) == 0
    assert end_of(booking) == END


def test_a_rule_that_objects_is_told_once_with_its_reason(device, alice):
    build.rule("max_length", 1, name="max-length")
    booking = kept(device, owner=alice)
    for second in (60, 45, 30, 15):
        keep_free_bookings(now=END - second * SECOND)
    assert end_of(booking) == END
    (text,) = told(alice)
    assert text.startswith("Your booking of Test 80GB · 0 on gpu1 ends at 13:00 and cannot be kept")
    assert "lasts 1.25 hours; the limit is 1 hour" in text


@pytest.mark.parametrize(("is_operator", "extended"), [(False, 0), (True, 1)])
def test_rules_bind_as_for_the_owner(device, is_operator, extended):
    """What would need approval is not approved by Berth; an operator's own act is the approval."""
    build.rule("max_length", 1, name="long", action="needs_approval")
    kept(device, owner=build.person(is_operator=is_operator))
    assert keep_free_bookings(now=END - MINUTE) == extended


def test_somebody_who_has_left_keeps_nothing(device, alice):
    alice.is_active = False
    alice.save()
    booking = kept(device, owner=alice)
    assert keep_free_bookings(now=END - MINUTE) == 0
    assert end_of(booking) == END


def test_one_that_was_released_is_not_kept(device, alice):
    booking = kept(device, owner=alice)
    bookings.release(booking.pk, actor=build.actor(alice), now=END - MINUTE)
    assert keep_free_bookings(now=END - MINUTE) == 0
    assert keep_free_bookings(now=END - 30 * SECOND) == 0
    assert end_of(booking) == END - MINUTE


def test_one_that_did_not_ask_is_not_kept(device, alice):
    build.booking(device, owner=alice)
    kept(build.device(), owner=alice, state=Booking.State.CANCELLED)
    kept(build.device(), owner=alice, start=END - MINUTE, end=END + HOUR)
    assert keep_free_bookings(now=END - MINUTE) == 0
    assert told(alice) == []


def test_several_devices_are_kept_as_one_or_not_at_all(device, alice):
    other = build.device(device.host, index=1)
    together, free = kept(device, other, owner=alice), build.device(device.host)
    single = kept(free, owner=alice)
    build.booking(other, start=END)
    assert keep_free_bookings(now=END - MINUTE) == 1
    assert end_of(together) == END
    assert end_of(single) == END + 15 * MINUTE
    Allocation.objects.filter(device=other, start=END).update(holds=False)
    assert keep_free_bookings(now=END - 45 * SECOND) == 1
    assert end_of(together) == END + 15 * MINUTE


def test_an_owner_who_goes_on_in_another_booking_hears_nothing(device, alice):
    kept(device, owner=alice)
    build.booking(device, owner=alice, start=END)
    assert keep_free_bookings(now=END - MINUTE) == 0
    assert told(alice) == []


def test_an_own_booking_that_begins_a_little_later_is_named_as_such(device, alice):
    kept(device, owner=alice)
    build.booking(device, owner=alice, start=END + 5 * MINUTE)
    keep_free_bookings(now=END - MINUTE)
    assert told(alice)[0].endswith("another booking of yours begins at 13:05.")


def test_one_that_cannot_be_kept_does_not_hold_up_the_others(device, alice):
    Device.objects.filter(pk=device.pk).update(index=7)
    kept(device, owner=build.user())  # without an account
    booking = kept(build.device(), owner=alice)
    assert keep_free_bookings(now=END - MINUTE) == 1
    assert end_of(booking) == END + 15 * MINUTE


@pytest.mark.db_race
@pytest.mark.django_db(transaction=True)
def test_two_passes_at_once_extend_once():
    alice = build.person()
    booked = [kept(build.device(), owner=alice) for _ in range(4)]
    counts, barrier = [], threading.Barrier(3)

    def sweep():
        try:
            barrier.wait(10)
            counts.append(keep_free_bookings(now=END - MINUTE))
        finally:
            connection.close()

    threads = [threading.Thread(target=sweep) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sum(counts) == AuditEntry.objects.filter(verb="extended").count() == 4
    assert {end_of(one) for one in booked} == {END + 15 * MINUTE}
    assert told(alice) == []
