"""Bookings through ``services.bookings.book`` beside bare INSERTs of the same rows.

The reference is what no system can do without: a booking and an allocation under the constraint, in a
transaction of their own.
"""

import statistics
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import connection, transaction

from bench import fill
from bench.figures import Figure, alternately_ms, percentile
from bench.site import Site
from reservations import clock
from reservations.models import Device, User
from reservations.services.actors import Actor
from reservations.services.bookings import Wish, book

_BOOKING = """
INSERT INTO reservations_booking (owner_id, created_by_id, start, "end", planned_end, created,
    state, ended_reason, kind, purpose, keep_if_free, early_signal, pinned, source, revision, held_back_why)
VALUES (%s, %s, %s, %s, %s, %s, 'confirmed', '', 'normal', 'bench', false, false, true, 'api', 1, '')
RETURNING id
"""
_ALLOCATION = """
INSERT INTO reservations_allocation (booking_id, device_id, start, "end", holds)
VALUES (%s, %s, %s, %s, true)
"""
HOUR = timedelta(hours=1)
# One in every gap of 27 days, four hours apart: within the 30 days that people may book ahead.
HOURS = 27 * 6


def measure(site: Site) -> Iterator[Figure]:
    people = fill.people(200)
    devices = fill.devices(64)
    for existing in (1_000,) if site.quick else (1_000, 10_000, 100_000):
        fill.empty()
        fill.bookings(existing, on=devices, owners=people, around=fill.today())
        yield from _beside_inserts(existing, devices, people, repeat=site.much(300, 60))


def _beside_inserts(
    existing: int, devices: Sequence[Device], people: Sequence[User], *, repeat: int
) -> Iterator[Figure]:
    free = free_hours(devices)
    actors = [Actor.of(one, source="api") for one in people]
    turn = iter(range(10**9))

    def through_the_service() -> None:
        device, start = next(free)
        wish = Wish(devices=(device.uuid,), start=start, end=start + HOUR, purpose="bench")
        book(wish, actor=actors[next(turn) % len(actors)], now=clock.now())

    def bare() -> None:
        device, start = next(free)
        _insert(people[next(turn) % len(people)], device, start)

    booked, inserted = alternately_ms(through_the_service, bare, repeat=repeat)
    value, reference = statistics.median(booked), statistics.median(inserted)
    yield Figure(
        name=f"book() at {existing:,} existing: p50 (p99 {percentile(booked, 99):.0f} ms)",
        value=value,
        unit="ms",
        reference_name=f"bare INSERTs, p99 {percentile(inserted, 99):.0f} ms",
        reference=reference,
        target="p99 ≤ 100 ms",
        met=percentile(booked, 99) <= 100,
    )
    yield Figure(
        name=f"book() at {existing:,} existing: rate of one caller",
        value=1000 / statistics.mean(booked),
        unit="/s",
        reference_name="bare INSERTs",
        reference=1000 / statistics.mean(inserted),
        target="—",
        met=True,
    )


def _insert(owner: User, device: Device, start: datetime) -> None:
    end = start + HOUR
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_BOOKING, [owner.pk, owner.pk, start, end, end, clock.now()])
        (booking,) = cursor.fetchone()
        cursor.execute(_ALLOCATION, [booking, device.pk, start, end])


def free_hours(devices: Sequence[Device]) -> Iterator[tuple[Device, datetime]]:
    """Hours in the gaps that ``fill.bookings`` leaves around today, from tomorrow on, each once.

    Both device and hour change at every step, so that callers neither meet on a device nor fill up
    what one person may hold at once.
    """
    first = fill.today() + timedelta(days=1, hours=2)
    for number in range(HOURS * len(devices)):
        hour = (number + number // len(devices)) % HOURS
        yield devices[number % len(devices)], first + hour * timedelta(hours=4)
