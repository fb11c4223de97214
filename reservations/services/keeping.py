"""Bookings that asked to be kept: extended shortly before their end, while nobody else has booked.

Level-triggered: each pass looks for kept bookings in their last minute, so one that was missed is made
up for by the next, and passes that run twice at once ask for the same end, which can be had once.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from reservations.core.endings import KEPT_BY
from reservations.core.errors import DomainError, Refused
from reservations.core.lifecycle import LAST_CHANGE_BEFORE_END
from reservations.core.period import Period
from reservations.models import Allocation, Booking, User
from reservations.selectors import bookings, busy, continuations
from reservations.selectors.visible import Viewer, current_allocations, owner_shown
from reservations.services import moving, notices, times, wording
from reservations.services.actors import berth_for

logger = logging.getLogger(__name__)

AHEAD = timedelta(seconds=60)
WHY = "kept: nobody else has booked"


def keep_free_bookings(*, now: datetime) -> int:
    """Extend each kept booking that is about to end, or tell its owner why not; says how many were."""
    ending = bookings.whole().filter(
        state=Booking.State.CONFIRMED,
        keep_if_free=True,
        start__lte=now,
        end__gt=now + LAST_CHANGE_BEFORE_END,
        end__lte=now + AHEAD,
    )
    return sum(_keep(booking, now=now) for booking in ending.order_by("end", "pk"))


def _keep(booking: Booking, *, now: datetime) -> bool:
    """An end and not a length is asked for: whoever is second is told that it has been reached."""
    later = times.end_after(booking.end, KEPT_BY)
    if following := _following(booking, later):
        _tell_who_follows(booking, following, now=now)
        return False
    try:
        moving.extend(booking.pk, actor=berth_for(booking.owner), now=now, end=later, why=WHY)
    except Refused as refused:
        objections = str(refused)
        _tell(booking, lambda _: objections, now=now)
    except DomainError as error:
        # Somebody else was quicker, or a lock was not to be had: the next pass sees what is true then.
        logger.info("booking=%s not extended: %s", booking.pk, error)
    else:
        return True
    return False


def _following(booking: Booking, later: datetime) -> Allocation | None:
    """Who has one of the devices first between the end and a later one."""
    devices = [one.device_id for one in current_allocations(booking)]
    held = busy.overlapping(devices, Period(booking.end, later), leave_out=booking.pk)
    following = held.select_related("booking__owner").prefetch_related("booking__people")
    return following.first()


def _tell_who_follows(booking: Booking, following: Allocation, *, now: datetime) -> None:
    """Not told: an owner who goes on with all the devices in another booking."""
    after = continuations.right_after(booking)
    if not continuations.not_in(booking, after, booking.owner_id):
        return
    who = _whose(following.booking, booking.owner)
    _tell(
        booking,
        lambda user: f"{who} begins at {wording.local_time(following.start, user, now=now)}.",
        now=now,
    )


def _whose(following: Booking, reader: User) -> str:
    if following.owner_id == reader.pk:
        return "another booking of yours"
    shown = owner_shown(following.owner, Viewer.of(reader).role_in(following))
    return f"a booking of {shown['name'] if shown else 'somebody else'}"


def _tell(booking: Booking, reason: Callable[[User], str], *, now: datetime) -> None:
    """Once for each end, however often it is looked at."""
    names = wording.names(one.device for one in current_allocations(booking))
    notices.tell(
        [booking.owner_id],
        "not_kept",
        lambda user: (
            f"Your booking of {names} ends at {wording.local_time(booking.end, user, now=now)} "
            f"and cannot be kept: {reason(user)}"
        ),
        key=f"not_kept:{booking.pk}:{booking.end:%Y%m%dT%H%M%S}",
        now=now,
        booking=booking,
    )
