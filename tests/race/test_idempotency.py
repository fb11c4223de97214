"""One request, sent more than once: it takes effect once, whatever became of the answers."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from hashlib import sha256

import pytest
from django.db import connections

from reservations.core.errors import IdempotencyMismatch, SlotTaken
from reservations.models import ApiCall, Booking
from reservations.services import bookings, writes
from reservations.services.bookings import Wish
from reservations.services.writes import Once, Replayed
from tests import build
from tests.build import NOON

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.db_race]
HOUR = timedelta(hours=1)
NOW = NOON - HOUR


def once(key="k1", body=b"{}", credential="token:1", path="/api/v1/bookings", method="POST"):
    def render(booking):
        return 201, f"booking {booking.pk}".encode()

    return Once(credential, key, method, path, sha256(body).digest(), render)


def book(device, person, *, now=NOW, key=None):
    wish = Wish(devices=(device.uuid,), start=NOON, duration=HOUR)
    return bookings.book(wish, actor=build.actor(person), now=now, once=key or once())


def test_a_request_whose_answer_was_lost_is_answered_again_and_not_done_again():
    device, alice = build.device(), build.person()
    booking = book(device, alice)
    with pytest.raises(Replayed) as replayed:
        book(device, alice)
    assert (replayed.value.status, replayed.value.body) == (201, f"booking {booking.pk}".encode())
    assert Booking.objects.count() == 1


def test_it_is_answered_again_even_when_it_would_no_longer_be_possible():
    device, alice = build.device(), build.person()
    book(device, alice)
    with pytest.raises(Replayed):
        book(device, alice, now=NOON + 5 * HOUR)


def test_eight_of_the_same_at_once_make_one_booking_and_one_answer():
    device, alice = build.device(), build.person()
    line = threading.Barrier(8)

    def attempt(_):
        try:
            line.wait(10)
            return f"booking {book(device, alice).pk}".encode()
        except Replayed as replayed:
            return replayed.body
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(attempt, range(8)))
    assert answers == {f"booking {Booking.objects.get().pk}".encode()}


@pytest.mark.parametrize(
    "other", [{"body": b'{"x":1}'}, {"path": "/api/v1/other"}, {"method": "PATCH"}]
)
def test_the_same_key_for_something_else_is_a_mismatch(other):
    device, alice = build.device(), build.person()
    book(device, alice)
    with pytest.raises(IdempotencyMismatch):
        book(device, alice, key=once(**other))


def test_keys_of_different_people_have_nothing_to_do_with_each_other():
    alice, bob = build.person(), build.person()
    book(build.device(), alice)
    book(build.device(), bob, key=once(credential="token:2"))
    assert Booking.objects.count() == 2


def test_a_refusal_is_not_kept_so_that_trying_again_may_succeed():
    device, alice = build.device(), build.person()
    blocker = build.booking(device)
    with pytest.raises(SlotTaken):
        book(device, alice)
    assert not ApiCall.objects.exists()
    bookings.cancel(blocker.pk, actor=build.actor(blocker.owner), now=NOW)
    assert book(device, alice).pk


def test_answers_are_forgotten_after_a_day():
    device, alice = build.device(), build.person()
    book(device, alice)
    assert writes.forget_answers(now=NOW + 24 * HOUR) == 0
    assert writes.forget_answers(now=NOW + 24 * HOUR + timedelta(seconds=1)) == 1


def test_every_verb_can_be_sent_again():
    device, alice = build.device(), build.person()
    booking = book(device, alice)
    actor = build.actor(alice)
    bookings.extend(booking.pk, actor=actor, now=NOW, duration=HOUR, once=once("k2"))
    with pytest.raises(Replayed):
        bookings.extend(booking.pk, actor=actor, now=NOW, duration=HOUR, once=once("k2"))
    bookings.release(booking.pk, actor=actor, now=NOW, once=once("k3"))
    with pytest.raises(Replayed):
        bookings.release(booking.pk, actor=actor, now=NOW, once=once("k3"))
    booking.refresh_from_db()
    assert (booking.end, booking.revision) == (NOON + 2 * HOUR, 3)
