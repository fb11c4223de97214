"""Warnings that a booking draws to its end, in good time to save or extend.

Each step is told once for each end: an extended booking is warned of its new end again. Somebody who
goes on with the same device in another booking is not warned at all.
"""

from datetime import datetime, timedelta

from reservations.models import Booking, Notice
from reservations.selectors import bookings, continuations, machines
from reservations.services import notices, wording

STEPS = (timedelta(minutes=15), timedelta(minutes=5), timedelta(minutes=1))
# In addition, for bookings of more than a day.
STEPS_OF_LONG_ONES = (timedelta(hours=24), timedelta(hours=2))
LONG = timedelta(hours=24)


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


def step_due(start: datetime, end: datetime, *, now: datetime) -> timedelta | None:
    """The latest step that has been reached; earlier ones that were missed are not made up for.

    A step that is longer than the booking itself says nothing.
    """
    steps = STEPS + (STEPS_OF_LONG_ONES if end - start > LONG else ())
    reached = [step for step in steps if end - now <= step < end - start]
    return min(reached, default=None)


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
