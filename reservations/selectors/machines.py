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


def running(devices: Iterable[int], *, now: datetime) -> dict[int, Allocation]:
    """The allocation that holds each device at ``now``, with its booking and owner, by device id."""
    rows = Allocation.objects.filter(
        device__in=list(devices), holds=True, start__lte=now, end__gt=now
    ).select_related("booking__owner")
    return {row.device_id: row for row in rows}


def people_of(bookings: Iterable[Booking]) -> Mapping[int, frozenset[int]]:
    """Ids of everybody who may use the devices of each booking: owner, people and team."""
    return _people({row.pk: (row.owner_id, row.team_id) for row in bookings})


def _people(owned: Mapping[int, tuple[int, int | None]]) -> Mapping[int, frozenset[int]]:
    """The same, from the ids of owner and team by that of the booking."""
    found: defaultdict[int, set[int]] = defaultdict(set)
    through = Booking.people.through.objects.filter(booking__in=owned)
    for booking, user in through.values_list("booking_id", "user_id"):
        found[booking].add(user)
    teams: defaultdict[int, set[int]] = defaultdict(set)
    members = Membership.objects.filter(team__in={team for _, team in owned.values() if team})
    for team, user in members.values_list("team_id", "user_id"):
        teams[team].add(user)
    return {
        pk: frozenset({owner, *found[pk], *(teams[team] if team else ())})
        for pk, (owner, team) in owned.items()
    }


def held_on(host: Host, *, since: datetime) -> list[Held]:
    """Everything that holds a device of the host and ends after ``since``."""
    # Plain values: every heartbeat reads this, and rows of models would take most of its time.
    rows = list(
        Allocation.objects.filter(device__host=host, holds=True, end__gt=since)
        .order_by("start", "id")
        .values_list(
            "booking_id",
            "device__uuid",
            "start",
            "end",
            "booking__owner_id",
            "booking__team_id",
            "booking__kind",
            "booking__early_signal",
            "booking__keep_if_free",
        )
    )
    people = _people({row[0]: (row[4], row[5]) for row in rows})
    return [
        Held(
            booking=booking,
            device=device,
            start=start,
            end=end,
            people=people[booking],
            kind=kind,
            early_signal=early_signal,
            keep_if_free=keep_if_free,
        )
        for booking, device, start, end, _, _, kind, early_signal, keep_if_free in rows
    ]


def given_up_on(host: Host, *, since: datetime, until: datetime, limit: int) -> tuple[int, ...]:
    """Cancelled bookings of the host whose start lies between the two, the latest first."""
    rows = (
        Allocation.objects.filter(
            device__host=host,
            holds=False,
            booking__state=Booking.State.CANCELLED,
            end__gt=since,
            start__gt=since,
            start__lte=until,
        )
        .order_by("-start", "-booking_id")
        .values_list("booking_id", flat=True)
    )
    # A booking has a row for each device; no host has more of them than are asked for here.
    return tuple(dict.fromkeys(rows[:limit]))


def next_on(device: Device, *, after: datetime) -> Allocation | None:
    """The allocation that holds the device at ``after``, or the first one behind it."""
    rows = Allocation.objects.filter(device=device, holds=True, end__gt=after)
    return rows.select_related("booking__owner").order_by("start").first()


def operators() -> QuerySet[User]:
    return User.objects.filter(is_operator=True, is_active=True)
