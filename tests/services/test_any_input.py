"""Whatever comes in, the answer is a booking or one of our own errors; never a crash."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reservations.core.errors import DomainError
from reservations.models import Allocation, Device
from reservations.services import bookings
from reservations.services.bookings import Change, DeviceFilter, Wish
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
NOW = NOON - timedelta(hours=1)

offsets = st.integers(-23 * 60, 23 * 60).map(lambda some: timezone(timedelta(minutes=some)))
instants = st.one_of(
    st.none(),
    st.datetimes(timezones=st.one_of(st.none(), st.just(UTC), offsets)),
    st.sampled_from([datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC), NOON]),
    st.integers(-5, 500).map(lambda step: NOON + step * timedelta(minutes=5)),
)
durations = st.one_of(st.none(), st.timedeltas(), st.just(timedelta(hours=1)))
texts = st.text(max_size=250)
wishes = st.builds(
    Wish,
    devices=st.lists(st.sampled_from(["GPU-here", "GPU-unknown", ""]), max_size=3).map(tuple),
    count=st.one_of(st.none(), st.integers()),
    filter=st.builds(
        DeviceFilter,
        model=st.one_of(st.none(), texts),
        host=st.one_of(st.none(), texts),
        min_memory_gib=st.one_of(st.none(), st.floats()),
        labels=st.dictionaries(texts, texts, max_size=2),
        same_host=st.booleans(),
    ),
    start=instants,
    end=instants,
    duration=durations,
    purpose=texts,
    team=st.one_of(st.none(), texts),
    people=st.lists(texts, max_size=2).map(tuple),
    owner=st.one_of(st.none(), texts),
    kind=st.sampled_from(["normal", "service", "maintenance", "", "x" * 500]),
)
changes = st.builds(
    Change,
    start=instants,
    end=instants,
    devices=st.one_of(st.none(), st.lists(st.sampled_from(["GPU-here", "x"])).map(tuple)),
    purpose=st.one_of(st.none(), texts),
)
many = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))


def the_device():
    return Device.objects.filter(uuid="GPU-here").first() or build.device(uuid="GPU-here")


def try_(verb):
    try:
        return verb()
    except DomainError as error:
        return str(error) or pytest.fail("an error without words")


@many
@given(wish=wishes, operates=st.booleans())
def test_any_wish_is_booked_or_refused_in_our_words(wish, operates):
    the_device()
    actor = build.actor(build.person(is_operator=operates))
    for verb in (bookings.check, bookings.book):
        try_(lambda verb=verb: verb(wish, actor=actor, now=NOW))


@many
@given(change=changes, duration=durations, end=instants)
def test_any_change_is_made_or_refused_in_our_words(change, duration, end):
    device = the_device()
    Allocation.objects.filter(device=device).update(holds=False)
    booking = build.booking(device, owner=build.person())
    actor = build.actor(booking.owner)
    try_(lambda: bookings.move(booking.pk, change, actor=actor, now=NOW))
    try_(lambda: bookings.extend(booking.pk, duration=duration, end=end, actor=actor, now=NOW))
