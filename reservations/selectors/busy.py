"""Which devices are held when. One indexed statement each; nothing is kept."""

from collections.abc import Collection, Iterable
from datetime import datetime

from django.db.models import BigIntegerField, DateTimeField, QuerySet

from reservations.core.period import Period
from reservations.models import Allocation, Device
from reservations.prepared import Bind, OneOf, Prepared


def overlapping(
    devices: Collection[int], period: Period, *, leave_out: int | None = None
) -> QuerySet[Allocation]:
    """What holds one of the devices at some instant of the period, in order of time.

    ``leave_out`` is a booking that may not stand in its own way.
    """
    held = _holding(period, leave_out).filter(device_id__in=devices)
    return held.order_by("start", "device_id")


def free_among(
    devices: QuerySet[Device], period: Period, *, leave_out: int | None = None
) -> QuerySet[Device]:
    """Those that nothing holds at any instant of the period."""
    return devices.exclude(pk__in=_holding(period, leave_out).values("device"))


def busy_periods(
    devices: Iterable[Device], *, after: datetime, until: datetime, leave_out: int | None = None
) -> dict[str, list[Period]]:
    """The held periods of each device, by its UUID, that intersect the span."""
    names = {one.pk: one.uuid for one in devices}
    rows = _HELD.rows(devices=list(names), start=after, end=until, leave_out=leave_out or 0)
    busy: dict[str, list[Period]] = {}
    for device, start, end in rows:
        busy.setdefault(names[device], []).append(Period(start, end))
    return busy


_HELD = Prepared(
    lambda: (
        Allocation.objects.filter(
            OneOf("device_id", "devices"),
            holds=True,
            start__lt=Bind("end", DateTimeField()),
            end__gt=Bind("start", DateTimeField()),
        )
        .exclude(booking_id=Bind("leave_out", BigIntegerField()))
        .order_by("start", "device_id")
        .values_list("device_id", "start", "end")
    )
)


def promised(devices: Collection[int], *, now: datetime) -> QuerySet[Allocation]:
    """What still holds one of the devices, now or later, with its booking."""
    return (
        Allocation.objects.filter(device_id__in=devices, holds=True, end__gt=now)
        .select_related("booking")
        .order_by("start", "id")
    )


def _holding(period: Period, leave_out: int | None) -> QuerySet[Allocation]:
    held = Allocation.objects.filter(holds=True, start__lt=period.end, end__gt=period.start)
    return held if leave_out is None else held.exclude(booking_id=leave_out)
