"""What went wrong for people elsewhere, and must not here."""

from datetime import timedelta

import pytest

from reservations.core.errors import NotPossibleNow, SlotTaken
from reservations.models import Allocation, AuditEntry, Booking, Device, Notice
from reservations.selectors import machines
from reservations.services import bookings, devices
from reservations.services.actors import BERTH
from reservations.services.bookings import Change, Wish
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)
NOW = NOON - HOUR


def book(device, person, start=NOON, now=NOW, **fields):
    wish = Wish(devices=(device.uuid,), start=start, duration=HOUR, **fields)
    return bookings.book(wish, actor=build.actor(person), now=now)


def test_back_to_back_bookings_need_no_minute_between_them():
    device = build.device()
    first, second = book(device, build.person()), book(device, build.person(), NOON + HOUR)
    assert first.end == second.start


def test_in_the_second_in_which_one_ends_and_the_next_begins_only_the_next_holds():
    device = build.device()
    first, second = book(device, build.person()), book(device, build.person(), NOON + HOUR)
    at = {
        moment: machines.running([device.pk], now=moment)[device.pk].booking_id
        for moment in (NOON + HOUR - TICK, NOON + HOUR)
    }
    assert at == {NOON + HOUR - TICK: first.pk, NOON + HOUR: second.pk}


def test_somebody_who_continues_holds_the_device_without_a_gap():
    device, alice = build.device(), build.person()
    book(device, alice)
    book(device, alice, NOON + HOUR)
    moments = [NOON, NOON + HOUR - TICK, NOON + HOUR, NOON + 2 * HOUR - TICK]
    owners = {machines.running([device.pk], now=one)[device.pk].booking.owner for one in moments}
    assert owners == {alice}


def test_an_edit_cannot_grow_over_the_neighbour():
    device, alice = build.device(), build.person()
    booking = book(device, alice)
    book(device, build.person(), NOON + HOUR)
    change = Change(end=NOON + 1.5 * HOUR)
    with pytest.raises(SlotTaken):
        bookings.move(booking.pk, change, actor=build.actor(alice), now=NOW)


def test_history_cannot_be_edited_or_deleted_and_the_trail_stays_as_it_was():
    alice = build.person()
    booking = book(build.device(), alice)
    actor, later = build.actor(alice), NOON + 2 * HOUR
    trail = list(AuditEntry.objects.values())
    for verb in (
        lambda: bookings.move(booking.pk, Change(purpose="x"), actor=actor, now=later),
        lambda: bookings.extend(booking.pk, duration=HOUR, actor=actor, now=later),
        lambda: bookings.release(booking.pk, actor=actor, now=later),
    ):
        with pytest.raises(NotPossibleNow):
            verb()
    assert list(AuditEntry.objects.values()) == trail


def test_deleting_a_running_booking_ends_it_now_and_is_on_the_trail():
    alice = build.person()
    booking = book(build.device(), alice)
    ended = bookings.release(booking.pk, actor=build.actor(alice), now=NOON + HOUR / 2)
    assert ended.end == NOON + HOUR / 2
    assert AuditEntry.objects.filter(booking=booking, verb="released").exists()


def test_a_new_purpose_asks_nobody_whether_the_slot_is_free_and_mails_nobody():
    device, alice = build.device(), build.person()
    mate = build.person()
    booking = book(device, alice, people=(mate.username,))
    # Rules that came later and a device out of service do not matter for a text.
    build.rule("max_length", 0)
    Device.objects.update(state=Device.State.LOST, bookable=False)
    change = Change(purpose="thesis")
    assert bookings.move(booking.pk, change, actor=build.actor(alice), now=NOW).purpose == "thesis"
    assert not Notice.objects.exists()


def test_ids_need_not_follow_each_other():
    device, alice = build.device(), build.person()
    booking = book(device, alice)
    bookings.cancel(booking.pk, actor=build.actor(alice), now=NOW)
    gone = build.booking(build.device())
    Allocation.objects.filter(booking=gone).delete()
    gone.delete()
    again = book(device, alice)
    assert again.pk != booking.pk
    assert Allocation.objects.get(booking=again).device == device


def test_two_bookings_in_a_row_by_one_person_are_of_the_devices_named_each_time():
    first, second, alice = build.device(), build.device(), build.person()
    actor = build.actor(alice)
    one = bookings.book(
        Wish(devices=(first.uuid,), start=NOON, duration=HOUR), actor=actor, now=NOW
    )
    two = bookings.book(
        Wish(devices=(second.uuid,), start=NOON, duration=HOUR), actor=actor, now=NOW
    )
    assert [row.device for row in one.allocations.all()] == [first]
    assert [row.device for row in two.allocations.all()] == [second]


def test_a_booking_of_a_lost_device_is_not_moved_to_another_silently():
    host = build.host()
    gone = build.device(host)
    build.device(host)
    booking = book(gone, build.person())
    Device.objects.filter(pk=gone.pk).update(state=Device.State.LOST, state_since=NOW - HOUR)
    bookings.rebind_lost_devices(now=NOW)
    assert Allocation.objects.get(booking=booking).device == gone
    assert Notice.objects.filter(user=booking.owner, kind="flagged").exists()


def test_of_two_pending_bookings_that_share_a_device_the_second_approval_is_refused():
    device, operator = build.device(), build.actor(build.operator())
    first, second = (build.booking(device, owner=build.person(), state="pending") for _ in range(2))
    bookings.approve(first.pk, actor=operator, now=NOW)
    with pytest.raises(SlotTaken):
        bookings.approve(second.pk, actor=operator, now=NOW)
    assert Booking.objects.get(pk=second.pk).state == "pending"


def test_cards_that_swap_their_indexes_at_a_reboot_keep_their_bookings():
    host, alice = build.host(), build.person()
    first, second = build.device(host, index=0), build.device(host, index=1)
    booking = book(first, alice)
    Device.objects.filter(pk=first.pk).update(index=1)
    Device.objects.filter(pk=second.pk).update(index=0)
    assert Allocation.objects.get(booking=booking).device.uuid == first.uuid


def test_taking_a_device_out_of_service_drops_no_booking_silently():
    device, alice = build.device(), build.person()
    booking = book(device, alice)
    devices.retire_device(device.uuid, actor=BERTH, now=NOW)
    assert Booking.objects.get(pk=booking.pk).state == "confirmed"
    assert Notice.objects.filter(user=alice, kind="flagged").exists()
