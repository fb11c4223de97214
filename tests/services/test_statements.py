"""How many statements the verbs cost; a request that waits for the database waits once for each."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reservations.services import bookings
from reservations.services.bookings import Change, Wish
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = NOON - HOUR


def statements(work):
    """The statements without those that only bracket transactions."""
    with CaptureQueriesContext(
        connection,
    ) as captured:
        work()
    brackets = ("SAVEPOINT", "RELEASE", "BEGIN", "COMMIT")
    return [one["sql"] for one in captured if not one["sql"].startswith(brackets)]


@pytest.mark.parametrize("devices", [1, 8])
def test_booking_costs_ten_however_many_devices(devices):
    alice = build.person()
    host = build.host()
    uuids = tuple(build.device(host).uuid for _ in range(devices))
    wish = Wish(devices=uuids, start=NOON, duration=HOUR)
    spent = statements(lambda: bookings.book(wish, actor=build.actor(alice), now=NOW))
    assert len(spent) <= 10, "\n".join(spent)


def test_choosing_among_many_costs_no_more():
    alice, host = build.person(), build.host()
    for _ in range(20):
        build.booking(build.device(host), start=NOON + HOUR)
    wish = Wish(count=4, start=NOON, duration=HOUR)
    spent = statements(lambda: bookings.book(wish, actor=build.actor(alice), now=NOW))
    assert len(spent) <= 10, "\n".join(spent)


def test_a_new_purpose_asks_neither_rules_nor_who_is_free():
    alice = build.person()
    booking = build.booking(build.device(), owner=alice)
    change = Change(purpose="thesis")
    spent = statements(lambda: bookings.move(booking.pk, change, actor=build.actor(alice), now=NOW))
    assert not any("reservations_rule" in one for one in spent)
    assert not any("holds" in one and one.startswith("UPDATE") for one in spent)


def test_moving_and_releasing_cost_a_fixed_number():
    alice, devices = build.person(), [build.device() for _ in range(8)]
    booking = build.booking(*devices, owner=alice)
    actor = build.actor(alice)
    change = Change(end=NOON + 2 * HOUR)
    spent = statements(lambda: bookings.move(booking.pk, change, actor=actor, now=NOW))
    assert len(spent) <= 18, "\n".join(spent)
    spent = statements(lambda: bookings.release(booking.pk, actor=actor, now=NOON + HOUR))
    assert len(spent) <= 10, "\n".join(spent)
