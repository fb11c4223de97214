"""When a booking may start and end, before anybody asks what is free then."""

from datetime import UTC, datetime, timedelta

from django.conf import settings

from reservations.core.errors import Invalid
from reservations.core.lifecycle import START_TOLERANCE
from reservations.core.period import next_on_grid, previous_on_grid


def grid() -> timedelta:
    return timedelta(minutes=settings.BOOKING_GRID_MINUTES)


def settled_start(start: datetime, *, now: datetime) -> datetime:
    """The start that is meant: up to two minutes back is now, everything later lies on the grid.

    Raises:
        Invalid: it has passed, or lies off the grid; the nearest times on it are named.
    """
    if start < now - START_TOLERANCE:
        raise Invalid({"start": [f"The start has passed ({_shown(start)})."]})
    if start <= now:
        return now
    _check_grid("start", start)
    return start


def settled_end(end: datetime, *, now: datetime) -> datetime:
    """Raises ``Invalid``: it has passed, or lies off the grid; the nearest times on it are named."""
    if end <= now:
        raise Invalid({"end": [f"The end must lie in the future ({_shown(end)} has passed)."]})
    _check_grid("end", end)
    return end


def end_after(start: datetime, duration: timedelta) -> datetime:
    """The end of a duration: up to the next time on the grid, so that nobody gets less than asked."""
    return next_on_grid(start + duration, grid())


def _check_grid(name: str, instant: datetime) -> None:
    before, after = previous_on_grid(instant, grid()), next_on_grid(instant, grid())
    if before != after:
        minutes = settings.BOOKING_GRID_MINUTES
        raise Invalid(
            {
                name: [
                    f"Times are multiples of {minutes} minutes; "
                    f"the nearest are {_shown(before)} and {_shown(after)}."
                ]
            }
        )


def _shown(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
