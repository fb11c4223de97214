"""One day as text: every device with the bookings that touch it. For pages without scripts."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reservations.core.period import Period
from reservations.models import Device, Host
from reservations.selectors import bookings
from reservations.selectors.visible import Viewer, calendar_row, current_allocations


@dataclass(frozen=True)
class Booked:
    """A booking as a line; ``row`` is what the viewer may see of it."""

    row: dict[str, Any]
    start: datetime
    end: datetime


@dataclass(frozen=True)
class DeviceDay:
    device: Device
    booked: list[Booked]


def hosts(period: Period, *, viewer: Viewer) -> list[tuple[Host, list[DeviceDay]]]:
    """Hosts in the order of their names, each with its devices that are not retired."""
    devices = Device.objects.exclude(state=Device.State.RETIRED).select_related("host")
    booked = _booked(period, viewer)
    found: defaultdict[Host, list[DeviceDay]] = defaultdict(list)
    for device in devices.order_by("host__name", "index", "uuid"):
        found[device.host].append(DeviceDay(device, booked[device.pk]))
    return list(found.items())


def _booked(period: Period, viewer: Viewer) -> defaultdict[int, list[Booked]]:
    shown = bookings.whole().filter(
        state__in=("confirmed", "pending"), start__lt=period.end, end__gt=period.start
    )
    found: defaultdict[int, list[Booked]] = defaultdict(list)
    for booking in shown.order_by("start", "pk"):
        row = calendar_row(booking, viewer=viewer)
        line = Booked(row, booking.start, booking.end)
        for allocation in current_allocations(booking):
            found[allocation.device_id].append(line)
    return found
