"""Hosts and devices with who holds them now and who comes next."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery

from reservations.models import Allocation, Booking, Device, Host, HostStatus
from reservations.selectors import bookings
from reservations.selectors.visible import Viewer, calendar_row, instant

_READING: Final = (
    "at",
    "health",
    "utilization_percent",
    "memory_used_bytes",
    "memory_total_bytes",
    "temperature_c",
    "power_w",
)
_NOT_RETIRED = ~Q(devices__state=Device.State.RETIRED)


def devices(*, now: datetime) -> QuerySet[Device]:
    """Devices that are not retired, annotated with the ids of the two bookings that matter next.

    Holding allocations of a device never overlap, so the order of their ends is that of their starts,
    and the index by device and end finds both without reading the rest.
    """
    ahead = Allocation.objects.filter(device=OuterRef("pk"), holds=True, end__gt=now)
    keys = ahead.order_by("end").values("booking_id")
    return (
        Device.objects.exclude(state=Device.State.RETIRED)
        .select_related("host", "parent")
        .annotate(first_booking=Subquery(keys[:1]), second_booking=Subquery(keys[1:2]))
    )


def hosts() -> QuerySet[Host]:
    return Host.objects.select_related("status").annotate(
        device_count=Count("devices", filter=_NOT_RETIRED)
    )


def silent_hosts() -> dict[str, datetime]:
    """Since when each host that was flagged has been silent, by name."""
    silent = HostStatus.objects.filter(silent_since__isnull=False).order_by("host__name")
    return dict(silent.values_list("host__name", "silent_since"))  # type: ignore[arg-type]


def unheard_hosts() -> list[str]:
    """Hosts that were added and have never called, by name."""
    heard = HostStatus.objects.filter(last_seen__isnull=False).values("host")
    return list(Host.objects.exclude(pk__in=heard).order_by("name").values_list("name", flat=True))


def device_rows(
    found: Sequence[Device],
    *,
    viewer: Viewer,
    now: datetime,
    newest: Mapping[str, Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """REST rows of ``devices()``. ``newest`` holds live values by UUID, as far as there are any."""
    ahead = _bookings_ahead(found)
    return [_device_row(one, ahead, viewer, now, newest.get(one.uuid)) for one in found]


def described(device: Device) -> dict[str, Any]:
    """What a device is, whoever asks and whatever happens on it."""
    return {
        "uuid": device.uuid,
        "host": device.host.name,
        "index": device.index,
        "name": device.name,
        "vendor": device.vendor,
        "model": device.model,
        "memory_bytes": device.memory_bytes,
        "kind": device.kind,
        "parent": device.parent.uuid if device.parent else None,
        "bookable": device.bookable,
        "managed_by": device.managed_by,
        "state": device.state,
    }


def host_row(host: Host, *, viewer: Viewer, hold: Mapping[str, str] | None) -> dict[str, Any]:
    """REST row of one of ``hosts()``; ``hold`` as `holds.row` tells it, while there is one."""
    status = getattr(host, "status", None)
    return {
        "name": host.name,
        "labels": host.labels,
        "mode": host.mode,
        "devices": host.device_count,  # type: ignore[attr-defined]
        "last_seen": _or_none(status and status.last_seen),
        "silent_since": _or_none(status and status.silent_since),
        "agent_version": status.agent_version if status else "",
        "hold": hold,
        "health": status.health if status and viewer.is_operator else [],
    }


def _bookings_ahead(found: Iterable[Device]) -> dict[int, Booking]:
    keys = {
        key
        for device in found
        for key in (device.first_booking, device.second_booking)  # type: ignore[attr-defined]
        if key is not None
    }
    return {one.pk: one for one in bookings.whole().filter(pk__in=keys)}


def _device_row(
    device: Device,
    ahead: Mapping[int, Booking],
    viewer: Viewer,
    now: datetime,
    live: Mapping[str, Any] | None,
) -> dict[str, Any]:
    first = ahead.get(device.first_booking)  # type: ignore[attr-defined]
    second = ahead.get(device.second_booking)  # type: ignore[attr-defined]
    current = first if first and first.start <= now else None
    following = second if current else first
    return {
        **described(device),
        "state_since": _or_none(device.state_since),
        "current": calendar_row(current, viewer=viewer) if current else None,
        "next": calendar_row(following, viewer=viewer) if following else None,
        "sample": {name: live.get(name) for name in _READING} if live else None,
        "verdict": live.get("verdict") if live else None,
    }


def _or_none(moment: datetime | None) -> str | None:
    return instant(moment) if moment else None
