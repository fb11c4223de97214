"""What the agent API and the control worker read: who holds which device of a host."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from django.db import connection
from django.db.models import QuerySet

from reservations.core.plan import Held
from reservations.models import Allocation, Booking, Device, Host, Membership, User


def database_now() -> datetime:
    """The instant by the database's own clock: whatever was committed before it can be read after it."""
    postgresql = connection.vendor == "postgresql"
    query = (
        "SELECT clock_timestamp()" if postgresql else "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')"
    )
    with connection.cursor() as cursor:
        cursor.execute(query)
        instant: str | datetime = cursor.fetchone()[0]
    if isinstance(instant, str):
        return datetime.fromisoformat(instant).replace(tzinfo=UTC)
    return instant.astimezone(UTC)


def holding(*, host: Host) -> QuerySet[Allocation]:
    return Allocation.objects.filter(device__host=host, holds=True)


def running(devices: Iterable[int], *, now: datetime) -> dict[int, Allocation]:
    """The allocation that holds each device at ``now``, with its booking and owner, by device id."""
    rows = Allocation.objects.filter(
        device__in=list(devices), holds=True, start__lte=now, end__gt=now
    ).select_related("booking__owner")
    return {row.device_id: row for row in rows}


def people_of(bookings: Iterable[Booking]) -> Mapping[int, frozenset[int]]:
    """Ids of everybody who may use the devices of each booking: owner, people and team."""
    rows = list(bookings)
    found: defaultdict[int, set[int]] = defaultdict(set)
    through = Booking.people.through.objects.filter(booking__in={row.pk for row in rows})
    for booking, user in through.values_list("booking_id", "user_id"):
        found[booking].add(user)
    teams: defaultdict[int, set[int]] = defaultdict(set)
    members = Membership.objects.filter(team__in={row.team_id for row in rows if row.team_id})
    for team, user in members.values_list("team_id", "user_id"):
        teams[team].add(user)
    for row in rows:
        found[row.pk].add(row.owner_id)
        if row.team_id:
            found[row.pk] |= teams[row.team_id]
    return {pk: frozenset(users) for pk, users in found.items()}


def held_on(host: Host, *, since: datetime) -> list[Held]:
    """Everything that holds a device of the host and ends after ``since``."""
    rows = list(
        holding(host=host)
        .filter(end__gt=since)
        .select_related("booking", "device")
        .order_by("start")
    )
    people = people_of({row.booking_id: row.booking for row in rows}.values())
    return [
        Held(
            booking=row.booking_id,
            device=row.device.uuid,
            start=row.start,
            end=row.end,
            people=people[row.booking_id],
            kind=row.booking.kind,
            early_signal=row.booking.early_signal,
        )
        for row in rows
    ]


def next_on(device: Device, *, after: datetime) -> Allocation | None:
    """The allocation that holds the device at ``after``, or the first one behind it."""
    rows = Allocation.objects.filter(device=device, holds=True, end__gt=after)
    return rows.select_related("booking__owner").order_by("start").first()


def operators() -> QuerySet[User]:
    return User.objects.filter(is_operator=True, is_active=True)
