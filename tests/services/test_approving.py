from datetime import timedelta

import pytest

from reservations.core.errors import Forbidden, NotPossibleNow, Refused, SlotTaken
from reservations.models import Allocation, AuditEntry, Booking, Notice
from reservations.services import bookings
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = NOON - HOUR


@pytest.fixture
def waiting():
    return build.booking(build.device(), owner=build.person("alice"), state="pending")


def approve(booking, by=None, now=NOW):
    return bookings.approve(booking.pk, actor=build.actor(by or build.operator()), now=now)


def test_it_holds_its_devices_from_then_on_and_the_owner_is_told(waiting):
    approved = approve(waiting)
    assert (approved.state, approved.revision) == ("confirmed", 2)
    assert Allocation.objects.get().holds
    assert AuditEntry.objects.get().verb == "approved"
    assert Notice.objects.get().user.username == "alice"


def test_a_slot_that_was_taken_meanwhile_is_looked_at_again(waiting):
    build.booking(waiting.allocations.get().device)
    with pytest.raises(SlotTaken):
        approve(waiting)
    assert Booking.objects.get(pk=waiting.pk).state == "pending"


def test_rules_that_refuse_are_asked_again_but_not_the_one_that_asked_for_approval(waiting):
    build.rule("max_length", 0, name="long", action="needs_approval")
    assert approve(waiting).state == "confirmed"


def test_a_rule_that_refuses_by_now_does(waiting):
    build.rule("max_length", 0.5, name="length")
    with pytest.raises(Refused):
        approve(waiting)


def test_one_whose_start_has_passed_starts_now(waiting):
    now = NOON + HOUR / 4
    assert approve(waiting, now=now).start == now
    assert Allocation.objects.get().start == now


def test_one_whose_time_has_passed_is_too_late(waiting):
    with pytest.raises(NotPossibleNow):
        approve(waiting, now=NOON + HOUR)


@pytest.mark.parametrize("verb", [bookings.approve, bookings.reject])
def test_only_operators_decide(waiting, verb):
    with pytest.raises(Forbidden):
        verb(waiting.pk, actor=build.actor(waiting.owner), now=NOW)


@pytest.mark.parametrize("verb", [bookings.approve, bookings.reject])
def test_only_what_waits_can_be_decided(verb):
    booking = build.booking(build.device())
    with pytest.raises(NotPossibleNow):
        verb(booking.pk, actor=build.actor(build.operator()), now=NOW)


def test_a_rejection_says_why(waiting):
    rejected = bookings.reject(
        waiting.pk, actor=build.actor(build.operator()), now=NOW, why="exam week"
    )
    assert (rejected.state, rejected.ended_reason) == ("rejected", "rejected")
    assert "exam week" in Notice.objects.get().text
