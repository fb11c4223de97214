"""Cancel and release: who may, when, what stays, and that repeating changes nothing."""

from datetime import timedelta

import pytest

from reservations.core.errors import Forbidden, NotFound, NotPossibleNow, Stale
from reservations.models import Allocation, AuditEntry, Booking, Notice
from reservations.services import bookings, ending
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
BEFORE = NOON - HOUR
DURING = NOON + HOUR / 2
AFTER = NOON + HOUR


@pytest.fixture
def alice():
    return build.person("alice")


def do(verb, booking, *, now, by=None, **fields):
    return verb(booking.pk, actor=build.actor(by or booking.owner), now=now, **fields)


class TestRelease:
    def test_the_end_is_now_and_the_devices_are_free_at_once(self, alice):
        device = build.device()
        booking = build.booking(device, owner=alice)
        released = do(bookings.release, booking, now=DURING)
        assert (released.end, released.released_at) == (DURING, DURING)
        assert (released.state, released.ended_reason) == ("confirmed", "released")
        build.booking(device, start=DURING)

    def test_the_end_that_was_promised_stays_on_record(self, alice):
        booking = build.booking(build.device(), owner=alice)
        assert do(bookings.release, booking, now=DURING).planned_end == AFTER

    def test_the_time_that_was_used_is_kept(self, alice):
        booking = build.booking(build.device(), owner=alice)
        do(bookings.release, booking, now=DURING)
        row = Allocation.objects.get(booking=booking)
        assert (row.start, row.end, row.holds) == (NOON, DURING, True)

    def test_before_the_start_it_is_a_cancel(self, alice):
        booking = build.booking(build.device(), owner=alice)
        assert do(bookings.release, booking, now=BEFORE).state == "cancelled"

    def test_in_the_very_instant_of_the_start_nothing_has_passed_yet(self, alice):
        booking = build.booking(build.device(), owner=alice)
        assert do(bookings.release, booking, now=NOON).state == "cancelled"


class TestAfterAWaitForTheLock:
    """The request came two seconds before an edge, and waited four for its lock."""

    @pytest.fixture(autouse=True)
    def four_seconds_later(self, monkeypatch):
        monkeypatch.setattr(ending, "ticking", lambda now: lambda: now + 4 * SECOND)

    def test_what_has_begun_meanwhile_is_released_not_cancelled(self, alice):
        booking = build.booking(build.device(), owner=alice)
        released = do(bookings.release, booking, now=NOON - 2 * SECOND)
        assert (released.state, released.end) == ("confirmed", NOON + 2 * SECOND)

    def test_what_has_begun_meanwhile_cannot_be_cancelled(self, alice):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow, match="released instead"):
            do(bookings.cancel, booking, now=NOON - 2 * SECOND)

    def test_what_has_ended_meanwhile_is_history(self, alice):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow, match="history"):
            do(bookings.release, booking, now=AFTER - 2 * SECOND)


class TestCancel:
    def test_it_holds_nothing_any_more_and_is_kept(self, alice):
        device = build.device()
        booking = build.booking(device, owner=alice)
        cancelled = do(bookings.cancel, booking, now=BEFORE)
        assert cancelled.state == "cancelled"
        assert not Allocation.objects.get(booking=booking).holds
        build.booking(device)

    def test_what_has_begun_can_only_be_released(self, alice):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow, match="released instead"):
            do(bookings.cancel, booking, now=DURING)

    def test_a_pending_one_can_be_taken_back(self, alice):
        booking = build.booking(build.device(), owner=alice, state="pending")
        assert do(bookings.cancel, booking, now=BEFORE).state == "cancelled"


class TestDelete:
    @pytest.mark.parametrize(
        ("now", "state", "verb"),
        [(BEFORE, "cancelled", "cancelled"), (DURING, "confirmed", "released")],
    )
    def test_it_does_whichever_fits_once(self, alice, now, state, verb):
        booking = build.booking(build.device(), owner=alice)
        first = do(bookings.release, booking, now=now)
        again = do(bookings.release, booking, now=now + HOUR / 4)
        assert first.state == again.state == state
        assert (first.revision, first.end) == (again.revision, again.end)
        assert [one.verb for one in AuditEntry.objects.all()] == [verb]

    @pytest.mark.parametrize("verb", ["release", "cancel"])
    def test_what_ended_by_itself_is_history(self, alice, verb):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow, match="history"):
            do(getattr(bookings, verb), booking, now=AFTER)
        assert Booking.objects.get(pk=booking.pk).revision == 1

    def test_what_was_rejected_stays_rejected(self, alice):
        booking = build.booking(build.device(), owner=alice, state="rejected")
        with pytest.raises(NotPossibleNow):
            do(bookings.release, booking, now=BEFORE)


class TestWhoMay:
    def test_operators_and_managers_of_the_team_may_and_the_owner_is_told(self, alice):
        manager = build.person()
        team = build.team(alice, managers=(manager,))
        for person in (manager, build.operator()):
            booking = build.booking(build.device(), owner=alice, team=team)
            do(bookings.release, booking, by=person, now=DURING)
            assert Notice.objects.get(booking=booking).user == alice

    @pytest.mark.parametrize("who", ["teammate", "guest", "stranger", "other manager"])
    def test_nobody_else_may(self, alice, who):
        person = build.person()
        mates = (alice, person) if who == "teammate" else (alice,)
        booking = build.booking(build.device(), owner=alice, team=build.team(*mates))
        if who == "guest":
            booking.people.add(person)
        if who == "other manager":
            build.team(managers=(person,))
        with pytest.raises(Forbidden):
            do(bookings.release, booking, by=person, now=DURING)

    def test_owners_are_not_told_what_they_did(self, alice):
        do(bookings.release, build.booking(build.device(), owner=alice), now=DURING)
        assert not Notice.objects.exists()


def test_a_stale_revision_releases_nothing(alice):
    booking = build.booking(build.device(), owner=alice, revision=3)
    with pytest.raises(Stale):
        do(bookings.release, booking, now=DURING, expected_revision=2)
    assert Booking.objects.get(pk=booking.pk).released_at is None


def test_what_does_not_exist_is_not_found(alice):
    with pytest.raises(NotFound):
        bookings.release(10**30, actor=build.actor(alice), now=DURING)


def test_the_trail_tells_before_and_after_and_why(alice):
    booking = build.booking(build.device(), owner=alice)
    bookings.release(booking.pk, actor=build.actor(alice), now=DURING, why="done")
    entry = AuditEntry.objects.get()
    assert entry.before["end"] == "2027-03-01T13:00:00Z"
    assert entry.after["end"] == "2027-03-01T12:30:00Z"
    assert entry.why == "done"
