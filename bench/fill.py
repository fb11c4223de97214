"""Fills a database with many bookings that do not overlap, fast."""

from datetime import UTC, datetime, timedelta

from django.db import connection

from reservations.models import Account, Allocation, Booking, Device, Host, User

GIB = 2**30


def people(count: int) -> list[User]:
    User.objects.bulk_create(
        [User(username=f"bench{i}", password="!") for i in range(count)], ignore_conflicts=True
    )
    users = list(User.objects.filter(username__startswith="bench").order_by("id")[:count])
    Account.objects.bulk_create(
        [Account(user=user, unix_name=user.username) for user in users], ignore_conflicts=True
    )
    return users


def devices(count: int, *, host: str = "bench") -> list[Device]:
    on, _ = Host.objects.get_or_create(name=host)
    Device.objects.bulk_create(
        [
            Device(
                uuid=f"GPU-{host}-{i:05d}", host=on, vendor="simulated", index=i, model="Bench 80GB",
                memory_bytes=80 * GIB, bookable=True, managed_by="berth",
            )
            for i in range(count)
        ],
        ignore_conflicts=True,
    )  # fmt: skip
    return list(Device.objects.filter(host=on).order_by("index")[:count])


def bookings(
    count: int,
    *,
    on: list[Device],
    owner: User,
    around: datetime,
    slot: timedelta = timedelta(hours=2),
) -> None:
    """``count`` bookings of one device each, back to back with a gap, half before and half after ``around``."""
    per_device = -(-count // len(on))
    first = around - slot * 2 * (per_device // 2)
    rows = []
    for number in range(count):
        device, step = on[number % len(on)], number // len(on)
        start = first + slot * 2 * step
        rows.append((device, start, start + slot))
    for begin in range(0, len(rows), 20_000):
        _insert(rows[begin : begin + 20_000], owner)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _insert(rows: list[tuple[Device, datetime, datetime]], owner: User) -> None:
    made = Booking.objects.bulk_create(
        [
            Booking(
                owner=owner, start=start, end=end, planned_end=end, created=start, created_by=owner,
                purpose="bench", pinned=True,
            )
            for _, start, end in rows
        ],
        batch_size=2_000,
    )  # fmt: skip
    Allocation.objects.bulk_create(
        [
            Allocation(booking=booking, device=device, start=start, end=end)
            for booking, (device, start, end) in zip(made, rows, strict=True)
        ],
        batch_size=2_000,
    )


def empty() -> None:
    """Remove all bookings; people and devices stay."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("TRUNCATE reservations_booking CASCADE")
            return
    Allocation.objects.all().delete()
    Booking.objects.all().delete()


def today() -> datetime:
    """Midnight of today in UTC."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
