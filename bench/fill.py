"""Fills a PostgreSQL with people, devices, and many bookings that do not overlap, fast."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.db import connection, transaction
from django.db.models import BaseConstraint

from reservations.models import Account, Allocation, Device, Host, User
from reservations.models.constraints import NoOverlap

GIB = 2**30
# Django's own names of the tables; the columns are those of the models.
_ROWS = """
CREATE TEMPORARY TABLE filled ON COMMIT DROP AS
SELECT n, (%(devices)s::bigint[])[1 + n %% %(width)s] AS device_id,
    (%(owners)s::bigint[])[1 + n %% %(people)s] AS owner_id,
    %(first)s::timestamptz + (n / %(width)s) * %(step)s::interval AS start,
    (SELECT coalesce(max(id), 0) + 1 FROM reservations_booking) + n AS booking_id
FROM generate_series(0, %(count)s - 1) n
"""
_BOOKINGS = """
INSERT INTO reservations_booking (id, owner_id, created_by_id, start, "end", planned_end, created,
    state, ended_reason, kind, purpose, keep_if_free, early_signal, pinned, source, revision, held_back_why)
SELECT booking_id, owner_id, owner_id, start, start + %(slot)s, start + %(slot)s, start,
    'confirmed', '', 'normal', 'bench', false, false, true, 'api', 1, '' FROM filled
"""
_ALLOCATIONS = """
INSERT INTO reservations_allocation (booking_id, device_id, start, "end", holds)
SELECT booking_id, device_id, start, start + %(slot)s, true FROM filled ORDER BY device_id, random()
"""
_SEQUENCE = """
SELECT setval(pg_get_serial_sequence('reservations_booking', 'id'), max(id)) FROM reservations_booking
"""


def people(count: int) -> list[User]:
    User.objects.bulk_create(
        [User(username=f"bench{i}", password="!") for i in range(count)], ignore_conflicts=True
    )
    users = list(User.objects.filter(username__startswith="bench").order_by("id")[:count])
    Account.objects.bulk_create(
        [Account(user=user, unix_name=user.username) for user in users], ignore_conflicts=True
    )
    return users


def devices(count: int, *, per_host: int = 8, prefix: str = "bench") -> list[Device]:
    """Bookable devices, so many to a host; hosts and UUIDs begin with ``prefix``."""
    hosts = Host.objects.bulk_create(
        [Host(name=f"{prefix}-{number}") for number in range(-(-count // per_host))]
    )
    return Device.objects.bulk_create(
        [
            Device(
                uuid=f"GPU-{prefix}-{number:05d}",
                host=hosts[number // per_host],
                vendor="simulated",
                index=number % per_host,
                model="Bench 80GB",
                memory_bytes=80 * GIB,
                bookable=True,
                managed_by=Device.ManagedBy.BERTH,
            )
            for number in range(count)
        ]
    )


def bookings(
    count: int,
    *,
    on: Sequence[Device],
    owners: Sequence[User],
    around: datetime,
    slot: timedelta = timedelta(hours=2),
    gap: timedelta = timedelta(hours=2),
) -> None:
    """``count`` bookings of one device each, a gap after each, half before and half after ``around``."""
    per_device = -(-count // len(on))
    values = {
        "count": count,
        "devices": [one.pk for one in on],
        "width": len(on),
        "owners": [one.pk for one in owners],
        "people": len(owners),
        "first": around - (slot + gap) * (per_device // 2),
        "step": slot + gap,
        "slot": slot,
    }
    constraint = _no_overlap()
    with transaction.atomic(), connection.cursor() as cursor:
        # Foreign keys hold by construction; looking three million of them up takes a minute.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute("SET LOCAL maintenance_work_mem = '512MB'")
        with connection.schema_editor(atomic=False) as editor:
            editor.remove_constraint(Allocation, constraint)
            for statement in (_ROWS, _BOOKINGS, _ALLOCATIONS, _SEQUENCE):
                cursor.execute(statement, values)
            # One build of the index is quicker than a million insertions, and checks all the same.
            editor.add_constraint(Allocation, constraint)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE reservations_booking, reservations_allocation")


def _no_overlap() -> BaseConstraint:
    return next(one for one in Allocation._meta.constraints if isinstance(one, NoOverlap))


def empty() -> None:
    """Remove all bookings; people and devices stay."""
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE reservations_booking CASCADE")


def today() -> datetime:
    """Midnight of today in UTC."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
