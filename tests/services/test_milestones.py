"""Bookings start, draw to their end and end: each once, whatever the loops do."""

import pytest

from reservations.models import AuditEntry, Notice
from reservations.services.milestones import pass_milestones
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, SECOND

pytestmark = pytest.mark.django_db


@pytest.fixture
def device():
    return build.device(build.host("gpu1"), index=0)


def story(booking):
    entries = AuditEntry.objects.filter(booking=booking).order_by("id")
    return [(entry.verb, entry.at) for entry in entries]


def told(user):
    return list(Notice.objects.filter(user=user).order_by("id").values_list("kind", flat=True))


def test_a_booking_passes_each_milestone_once_as_time_goes_by(device):
    booking = build.booking(device)
    pass_milestones(now=NOON - SECOND)
    assert story(booking) == []
    for minute in (0, 1, 45, 46, 60, 61):
        pass_milestones(now=NOON + minute * MINUTE)
    assert story(booking) == [
        ("started", NOON),
        ("ending", NOON + 45 * MINUTE),
        ("ended", NOON + HOUR),
    ]
    assert told(booking.owner) == ["started", "ended"]


def test_what_was_missed_while_beat_was_down_is_made_up_for_with_its_true_times(device):
    booking = build.booking(device, hours=0.5)
    pass_milestones(now=NOON - MINUTE)
    assert pass_milestones(now=NOON + 40 * MINUTE) == 2
    assert story(booking) == [("started", NOON), ("ended", NOON + 30 * MINUTE)]


def test_a_week_without_beat_loses_no_milestone_but_sends_no_old_news(device):
    booking = build.booking(device)
    pass_milestones(now=NOON - MINUTE)
    pass_milestones(now=NOON + 7 * 24 * HOUR)
    assert [verb for verb, _ in story(booking)] == ["started", "ended"]
    assert told(booking.owner) == []


def test_two_beats_are_harmless(device):
    """Both look at the same rows, and the second one finds everything done."""
    booking = build.booking(device)
    assert [pass_milestones(now=NOON) for _ in range(2)] == [1, 0]
    assert len(story(booking)) == len(told(booking.owner)) == 1


def test_history_from_before_the_first_pass_is_left_alone(device):
    booking = build.booking(device, start=NOON - 30 * 24 * HOUR)
    pass_milestones(now=NOON)
    assert story(booking) == []


def test_cancelled_and_pending_bookings_have_no_milestones(device):
    for state in ("cancelled", "rejected", "pending"):
        booking = build.booking(device, state=state)
        pass_milestones(now=NOON + MINUTE)
        assert story(booking) == []


def test_an_extended_booking_draws_to_its_new_end_again(device):
    booking = build.booking(device)
    pass_milestones(now=NOON + 50 * MINUTE)
    booking.end = NOON + 2 * HOUR
    booking.save()
    pass_milestones(now=NOON + 51 * MINUTE)
    pass_milestones(now=NOON + 110 * MINUTE)
    assert [verb for verb, _ in story(booking)] == ["started", "ending", "ending"]


def test_somebody_who_releases_knows_that_it_has_ended(device):
    booking = build.booking(device, end=NOON + 20 * MINUTE, released_at=NOON + 20 * MINUTE)
    pass_milestones(now=NOON + 21 * MINUTE)
    assert story(booking)[-1] == ("ended", NOON + 20 * MINUTE)
    assert told(booking.owner) == ["started"]


def test_back_to_back_bookings_of_one_person_tell_of_no_edge_between(device):
    first = build.booking(device)
    second = build.booking(device, owner=first.owner, start=NOON + HOUR)
    for hour in range(3):
        pass_milestones(now=NOON + hour * HOUR)
    assert told(first.owner) == ["started", "ended"]
    assert Notice.objects.get(kind="started").booking == first
    assert Notice.objects.get(kind="ended").booking == second
    assert [verb for verb, _ in story(first)] == ["started", "ended"]


def test_everybody_of_the_booking_is_told_and_maintenance_tells_nobody(device):
    bob = build.user()
    build.booking(device).people.add(bob)
    block = build.booking(build.device(), kind="maintenance")
    pass_milestones(now=NOON)
    assert (told(bob), told(block.owner)) == (["started"], [])
    assert [verb for verb, _ in story(block)] == ["started"]


def test_the_number_of_queries_does_not_grow_with_what_has_been_passed(
    device, django_assert_max_num_queries
):
    for number in range(30):
        build.booking(device, start=NOON + number * MINUTE, end=NOON + (number + 1) * MINUTE)
    now = NOON + 31 * MINUTE
    assert pass_milestones(now=now) == 60
    with django_assert_max_num_queries(8):
        assert pass_milestones(now=now) == 0
