"""Bookings that touch: somebody who has a device before and after an edge has it without a break."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from reservations.models import Allocation, Booking, Device
from reservations.selectors import machines, visible

# Who has which device (by id) on the other side of an edge.
Neighbours = Mapping[int, frozenset[int]]


def just_before(booking: Booking) -> Neighbours:
    """The people of the bookings that end where this one starts, by device."""
    return _neighbours(booking, end=booking.start)


def right_after(booking: Booking) -> Neighbours:
    """The people of the bookings that start where this one ends, by device."""
    return _neighbours(booking, start=booking.end)


def not_in(booking: Booking, neighbours: Neighbours, person: int) -> list[Device]:
    """The booking's devices that the person does not have on the other side of the edge."""
    return [
        one.device
        for one in visible.current_allocations(booking)
        if person not in neighbours.get(one.device_id, frozenset())
    ]


def _neighbours(booking: Booking, **edge: Any) -> Neighbours:
    devices = [one.device_id for one in visible.current_allocations(booking)]
    rows = list(
        Allocation.objects.filter(device__in=devices, holds=True, **edge)
        .exclude(booking=booking)
        .select_related("booking")
    )
    people = machines.people_of(row.booking for row in rows)
    found: defaultdict[int, frozenset[int]] = defaultdict(frozenset)
    for row in rows:
        if row.booking.kind != Booking.Kind.MAINTENANCE:
            found[row.device_id] |= people[row.booking_id]
    return found
