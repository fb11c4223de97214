from datetime import timedelta

import pytest
from django.db.models import ProtectedError

from reservations.core.errors import Forbidden, NotFound
from reservations.models import Booking
from reservations.services import people
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_leaving_cancels_what_is_to_come_ends_what_runs_and_keeps_what_was():
    alice, now = build.person(), NOON + HOUR / 2
    past = build.booking(build.device(), owner=alice, start=NOON - 5 * HOUR)
    running = build.booking(build.device(), owner=alice)
    upcoming = build.booking(build.device(), owner=alice, start=NOON + HOUR)
    pending = build.booking(build.device(), owner=alice, start=NOON + HOUR, state="pending")
    somebody_elses = build.booking(build.device())
    people.deactivate_user(alice.pk, actor=build.actor(build.operator()), now=now)
    rows = {one.pk: (one.state, one.end) for one in Booking.objects.all()}
    assert rows[past.pk] == ("confirmed", NOON - 4 * HOUR)
    assert rows[running.pk] == ("confirmed", now)
    assert rows[upcoming.pk] == rows[pending.pk] == ("cancelled", NOON + 2 * HOUR)
    assert rows[somebody_elses.pk] == ("confirmed", NOON + HOUR)
    alice.refresh_from_db()
    assert not alice.is_active


def test_only_operators_close_an_access():
    alice = build.person()
    with pytest.raises(Forbidden):
        people.deactivate_user(alice.pk, actor=build.actor(alice), now=NOON)


def test_nobody_by_that_id_is_not_found():
    with pytest.raises(NotFound):
        people.deactivate_user(10**9, actor=build.actor(build.operator()), now=NOON)


def test_somebody_with_history_cannot_be_deleted():
    booking = build.booking(build.device())
    with pytest.raises(ProtectedError):
        booking.owner.delete()
