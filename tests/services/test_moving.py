"""Moving and extending: as one, by the rules, and never the past."""

from datetime import timedelta

import pytest

from reservations import clock
from reservations.core.errors import (
    Forbidden,
    Invalid,
    NotFound,
    NotPossibleNow,
    Refused,
    SlotTaken,
    Stale,
)
from reservations.models import Allocation, AuditEntry, Booking, Notice
from reservations.services import bookings, moving
from reservations.services.bookings import Change
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
BEFORE = NOON - HOUR
DURING = NOON + 30 * MINUTE


@pytest.fixture
def alice():
    return build.person("alice")


def move(booking, by=None, now=BEFORE, revision=None, **change):
    return bookings.move(
        booking.pk,
        Change(**change),
        actor=build.actor(by or booking.owner),
        now=now,
        expected_revision=revision,
    )


def extend(booking, by=None, now=DURING, **how):
    return bookings.extend(booking.pk, actor=build.actor(by or booking.owner), now=now, **how)


def held(booking):
    rows = Allocation.objects.filter(booking=booking, holds=True).order_by("device_id")
    return [(one.device, one.start, one.end) for one in rows]


class TestBeforeTheStart:
    def test_it_moves_as_one_and_counts_a_revision(self, alice):
        devices = [build.device(), build.device()]
        booking = build.booking(*devices, owner=alice)
        moved = move(booking, start=NOON + HOUR, end=NOON + 3 * HOUR)
        expected = [(one, NOON + HOUR, NOON + 3 * HOUR) for one in devices]
        assert held(booking) == expected
        assert (moved.revision, moved.planned_end) == (2, NOON + 3 * HOUR)

    def test_all_or_nothing(self, alice):
        free, contested = build.device(), build.device()
        booking = build.booking(free, contested, owner=alice)
        build.booking(contested, start=NOON + HOUR)
        with pytest.raises(SlotTaken):
            move(booking, start=NOON + HOUR, end=NOON + 2 * HOUR)
        assert [start for _, start, _ in held(booking)] == [NOON, NOON]

    def test_onto_itself_it_may_overlap(self, alice):
        booking = build.booking(build.device(), owner=alice)
        assert move(booking, start=NOON + 30 * MINUTE, end=NOON + 90 * MINUTE).revision == 2

    def test_other_devices_are_pinned_and_the_old_ones_are_free(self, alice):
        old, kept, new = build.device(), build.device(), build.device()
        booking = build.booking(old, kept, owner=alice)
        moved = move(booking, devices=(kept.uuid, new.uuid))
        assert moved.pinned
        assert {device for device, _, _ in held(booking)} == {kept, new}
        build.booking(old)

    @pytest.mark.parametrize(("had", "wanted"), [(1, 3), (3, 1)])
    def test_more_or_fewer_devices(self, alice, had, wanted):
        host = build.host()
        devices = [build.device(host) for _ in range(3)]
        booking = build.booking(*devices[:had], owner=alice)
        move(booking, devices=tuple(one.uuid for one in devices[:wanted]))
        assert {device for device, _, _ in held(booking)} == set(devices[:wanted])
        assert Allocation.objects.count() == wanted

    def test_a_start_up_to_two_minutes_back_is_now(self, alice):
        booking = build.booking(build.device(), owner=alice)
        now = BEFORE + MINUTE
        assert move(booking, start=BEFORE, now=now).start == now

    @pytest.mark.parametrize(
        "change",
        [
            {"start": BEFORE - HOUR},
            {"start": NOON + HOUR},
            {"end": NOON},
            {"start": NOON + 3 * MINUTE},
            {"end": NOON + 3 * MINUTE},
            {"end": NOON.replace(tzinfo=None)},
            {"devices": ()},
            {"devices": ("GPU-unknown",)},
            {"purpose": "x" * 201},
            {"purpose": "a\nb"},
        ],
    )
    def test_what_makes_no_sense_is_invalid(self, alice, change):
        with pytest.raises(Invalid):
            move(build.booking(build.device(), owner=alice), **change)

    def test_somebody_else_is_named_and_alternatives_are_offered(self, alice):
        device, bob = build.device(), build.person("bob")
        build.booking(device, owner=bob, start=NOON + HOUR)
        booking = build.booking(device, owner=alice)
        with pytest.raises(SlotTaken) as taken:
            move(booking, end=NOON + 90 * MINUTE)
        assert [one.owner for one in taken.value.blockers] == ["bob"]
        assert taken.value.alternatives[0].start == NOON + 2 * HOUR

    def test_rules_are_asked_about_more_but_not_about_less(self, alice):
        booking = build.booking(build.device(), owner=alice, hours=4)
        build.rule("max_length", 2, name="length")
        with pytest.raises(Refused):
            move(booking, end=NOON + 5 * HOUR)
        assert move(booking, end=NOON + 3 * HOUR).end == NOON + 3 * HOUR

    def test_a_booking_does_not_count_against_its_own_quota(self, alice):
        build.rule("max_devices", 1, name="devices-at-once")
        booking = build.booking(build.device(), owner=alice)
        assert move(booking, end=NOON + 2 * HOUR).end == NOON + 2 * HOUR


class TestWhileItRuns:
    def test_only_the_end_moves(self, alice):
        booking = build.booking(build.device(), owner=alice, hours=2)
        assert move(booking, now=DURING, end=NOON + HOUR).end == NOON + HOUR
        assert held(booking)[0][1:] == (NOON, NOON + HOUR)

    def test_the_start_stays_with_a_reason(self, alice):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow, match="only its end can be moved"):
            move(booking, now=DURING, start=NOON + HOUR, end=NOON + 2 * HOUR)

    def test_a_start_sent_back_in_milliseconds_is_the_same_start(self, alice):
        start = NOON + timedelta(microseconds=1234)
        booking = build.booking(build.device(), owner=alice, start=start, end=NOON + HOUR)
        moved = move(
            booking, now=DURING, start=NOON + timedelta(milliseconds=1), end=NOON + 2 * HOUR
        )
        assert (moved.start, moved.end) == (start, NOON + 2 * HOUR)

    def test_the_devices_stay(self, alice):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow):
            move(booking, now=DURING, devices=(build.device().uuid,))

    def test_the_end_cannot_move_into_the_past(self, alice):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(Invalid):
            move(booking, now=DURING, end=NOON + 15 * MINUTE)


class TestWhenItIsOver:
    @pytest.mark.parametrize(
        "change", [{"end": NOON + 5 * HOUR}, {"purpose": "other"}, {"start": NOON + 3 * HOUR}]
    )
    def test_nothing_changes_any_more(self, alice, change):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow):
            move(booking, now=NOON + HOUR, **change)
        assert Booking.objects.get(pk=booking.pk).revision == 1
        assert not AuditEntry.objects.exists()

    @pytest.mark.parametrize("state", ["cancelled", "rejected", "pending"])
    def test_nor_for_what_is_not_confirmed(self, alice, state):
        booking = build.booking(build.device(), owner=alice, state=state)
        with pytest.raises(NotPossibleNow):
            move(booking, end=NOON + 2 * HOUR)


class TestExtending:
    def test_a_duration_is_added_and_rounded_up_to_the_grid(self, alice):
        booking = build.booking(build.device(), owner=alice)
        extended = extend(booking, duration=31 * MINUTE)
        assert (extended.end, extended.planned_end) == (NOON + 95 * MINUTE, NOON + 95 * MINUTE)
        assert AuditEntry.objects.get(booking=booking).verb == "extended"

    def test_an_end_is_taken_as_it_is(self, alice):
        booking = build.booking(build.device(), owner=alice)
        assert extend(booking, end=NOON + 2 * HOUR).end == NOON + 2 * HOUR

    def test_before_the_start_too(self, alice):
        booking = build.booking(build.device(), owner=alice)
        assert extend(booking, now=BEFORE, duration=HOUR).end == NOON + 2 * HOUR

    @pytest.mark.parametrize(
        "how",
        [
            {},
            {"duration": HOUR, "end": NOON + 3 * HOUR},
            {"duration": -HOUR},
            {"duration": timedelta.max},
            {"end": NOON + HOUR},
            {"end": NOON + 45 * MINUTE},
            {"end": NOON + 61 * MINUTE},
        ],
    )
    def test_what_does_not_lengthen_is_invalid(self, alice, how):
        with pytest.raises(Invalid):
            extend(build.booking(build.device(), owner=alice), **how)

    def test_not_over_the_next_booking(self, alice):
        device = build.device()
        booking = build.booking(device, owner=alice)
        build.booking(device, start=NOON + HOUR)
        with pytest.raises(SlotTaken) as taken:
            extend(booking, duration=HOUR)
        assert taken.value.blockers[0].start == NOON + HOUR

    @pytest.mark.parametrize(("left", "possible"), [(5 * SECOND, True), (4.9 * SECOND, False)])
    def test_the_last_five_seconds_are_too_late(self, alice, left, possible, monkeypatch):
        monkeypatch.setattr(moving, "ticking", lambda now: lambda: now)
        booking = build.booking(build.device(), owner=alice)
        if possible:
            assert extend(booking, now=NOON + HOUR - left, duration=HOUR).revision == 2
        else:
            with pytest.raises(NotPossibleNow, match="too late"):
                extend(booking, now=NOON + HOUR - left, duration=HOUR)

    def test_the_time_is_read_again_after_the_locks(self, alice, monkeypatch):
        # Six seconds were left when the request came; it then waited two for its locks.
        monkeypatch.setattr(moving, "ticking", lambda now: lambda: now + 2 * SECOND)
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow):
            extend(booking, now=NOON + HOUR - 6 * SECOND, duration=HOUR)

    def test_a_moved_end_is_too_late_likewise(self, alice):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(NotPossibleNow):
            move(booking, now=NOON + HOUR - 4 * SECOND, end=NOON + 2 * HOUR)

    def test_a_purpose_is_never_too_late_while_it_runs(self, alice):
        booking = build.booking(build.device(), owner=alice)
        assert move(booking, now=NOON + HOUR - SECOND, purpose="late").purpose == "late"


def test_the_running_clock_goes_on_from_the_instant_that_it_was_given():
    shown = clock.ticking(NOON)
    first, second = shown(), shown()
    assert NOON <= first <= second < NOON + MINUTE


class TestRevisions:
    def test_the_expected_one_passes(self, alice):
        booking = build.booking(build.device(), owner=alice)
        assert move(booking, revision=1, purpose="new").revision == 2

    def test_another_one_is_stale_and_says_which_is_current(self, alice):
        booking = build.booking(build.device(), owner=alice)
        move(booking, purpose="first")
        with pytest.raises(Stale) as stale:
            move(booking, revision=1, purpose="second")
        assert stale.value.current == 2


class TestWhoMay:
    def test_a_stranger_may_not(self, alice):
        booking = build.booking(build.device(), owner=alice)
        with pytest.raises(Forbidden):
            move(booking, by=build.person(), purpose="mine")

    def test_neither_teammates_nor_managers_nor_the_people_it_is_for(self, alice):
        mate, manager, guest = build.person(), build.person(), build.person()
        team = build.team(alice, mate, managers=(manager,))
        booking = build.booking(build.device(), owner=alice, team=team)
        booking.people.add(guest)
        for person in (mate, manager, guest):
            with pytest.raises(Forbidden):
                move(booking, by=person, end=NOON + 2 * HOUR)

    def test_an_operator_may_and_the_owner_is_told(self, alice):
        booking = build.booking(build.device(), owner=alice)
        move(booking, by=build.operator("admin"), end=NOON + 2 * HOUR)
        assert Notice.objects.get().text.startswith("admin moved your booking")

    def test_what_does_not_exist_is_not_found(self, alice):
        with pytest.raises(NotFound):
            bookings.move(10**30, Change(purpose="x"), actor=build.actor(alice), now=BEFORE)
