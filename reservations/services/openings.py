"""Whether a booking's devices let its people in, as their hosts last said: known while it is held back."""

from datetime import datetime, timedelta
from typing import Final

from reservations import announce
from reservations.models import Booking, Host, Report
from reservations.selectors import bookings
from reservations.selectors.visible import current_allocations

KINDS: Final = ("delayed", "opened")
# What was said earlier before the start was about another start, from before the booking was moved.
_EARLIEST: Final = timedelta(minutes=1)


def note(booking: Booking) -> None:
    """Remember since when and why a device of the booking is not open.

    By the hosts' clocks, not by the order of arrival: what waited in a spool changes nothing newer.
    A host that does not enforce closes nothing, whatever it has said before; nor does a device that
    the booking has no longer.
    """
    waiting: dict[tuple[int | None, str], tuple[datetime, str]] = {}
    said = Report.objects.filter(
        booking=booking,
        kind__in=KINDS,
        host__mode=Host.Mode.ENFORCE,
        device__in=[one.device_id for one in current_allocations(booking)],
        at__gte=booking.start - _EARLIEST,
    )
    told = said.order_by("at", "pk").values_list("kind", "at", "device_id", "body")
    for kind, at, device, body in told:
        who = (device, str(body.get("unix_name") or body.get("uid")))
        if kind == "opened":
            waiting.pop(who, None)
        else:
            since = waiting[who][0] if who in waiting else at
            waiting[who] = (since, body.get("text", ""))
    first = min(waiting.values(), default=None)
    booking.held_back_since, booking.held_back_why = first or (None, "")
    Booking.objects.filter(pk=booking.pk).update(
        held_back_since=booking.held_back_since, held_back_why=booking.held_back_why
    )


def note_those_of(host: Host, *, now: datetime) -> None:
    """After a change of the host's mode."""
    held_back = Booking.objects.filter(
        held_back_since__isnull=False, end__gt=now, allocations__device__host=host
    )
    for booking in bookings.whole().filter(pk__in=held_back.values("pk")):
        note(booking)
        announce.booking_changed(booking)
