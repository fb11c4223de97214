"""Warnings in the browser that a booking draws to its end, at the steps of `core.endings`.

Somebody who goes on with the same device in another booking is not warned at all.
"""

from datetime import datetime, timedelta

from reservations.core.endings import STEPS_OF_LONG_ONES, step_due
from reservations.models import Booking, Notice
from reservations.selectors import bookings, continuations, machines
from reservations.services import notices, wording


def write_ending_notices(*, now: datetime) -> int:
    """Write the warnings that are due; says for how many bookings."""
    soon = now + max(STEPS_OF_LONG_ONES)
    running = bookings.whole().filter(
        state=Booking.State.CONFIRMED, start__lte=now, end__gt=now, end__lte=soon
    )
    due: dict[str, tuple[Booking, timedelta]] = {}
    for booking in running.exclude(kind=Booking.Kind.MAINTENANCE).order_by("end"):
        step = step_due(booking.start, booking.end, now=now)
        if step is not None:
            due[_key(booking, step)] = (booking, step)
    for key in _told(due):
        del due[key]
    for key, (booking, _) in due.items():
        _tell(booking, key, now=now)
    return len(due)


def _key(booking: Booking, step: timedelta) -> str:
    return f"ending:{booking.pk}:{booking.end:%Y%m%dT%H%M%S}:{int(step.total_seconds() // 60)}"


def _told(due: dict[str, tuple[Booking, timedelta]]) -> list[str]:
    """Those of which the owner has been told: nothing is left to do."""
    owners = {f"{key}:{booking.owner_id}": key for key, (booking, _) in due.items()}
    told = Notice.objects.filter(key__in=owners).values_list("key", flat=True)
    return [owners[key] for key in told]


def _tell(booking: Booking, key: str, *, now: datetime) -> None:
    after = continuations.right_after(booking)
    for person in machines.people_of([booking])[booking.pk]:
        over = continuations.not_in(booking, after, person)
        if not over:
            continue
        text = _warning(booking, wording.names(over), now=now)
        notices.tell([person], "ending", text, key=key, now=now, booking=booking)


def _warning(booking: Booking, names: str, *, now: datetime) -> notices.Text:
    left = wording.span(booking.end - now)
    return lambda user: (
        f"Your booking of {names} ends at {wording.local_time(booking.end, user, now=now)}, "
        f"in {left}. Save your work, or extend the booking."
    )
