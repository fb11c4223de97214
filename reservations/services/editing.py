"""Opening a booking for a change: found, locked, allowed, unchanged since, and possible at this time."""

from collections.abc import Callable, Sequence
from datetime import datetime

from reservations.core.errors import Forbidden, NotFound, NotPossibleNow, Stale
from reservations.core.lifecycle import (
    LAST_CHANGE_BEFORE_END,
    Phase,
    Verb,
    may,
    phase_of,
)
from reservations.models import Booking
from reservations.selectors import bookings
from reservations.selectors.standing import ActiveRule
from reservations.selectors.visible import instant
from reservations.services import locks
from reservations.services.actors import Actor


def opened(
    booking_id: int,
    verb: Verb,
    *,
    actor: Actor,
    rules: Sequence[ActiveRule] = (),
    expected_revision: int | None = None,
) -> Booking:
    """The booking as of now, under the locks of its team and owner.

    Raises:
        NotFound, Forbidden
        Stale: it is no longer at the revision that the actor had seen.
    """
    seen = Booking.objects.filter(pk=booking_id).only("owner_id", "team_id").first()
    if seen is None:
        raise NotFound("There is no such booking.")
    locks.people(owner=seen.owner_id, team=seen.team_id, rules=rules)
    booking = bookings.one(booking_id)
    if not may(actor.viewer().role_in(booking), verb):
        raise Forbidden(f"You may not {verb.value} this booking.")
    if expected_revision is not None and expected_revision != booking.revision:
        raise Stale(
            "Somebody has changed this booking meanwhile.",
            booking=booking.pk,
            current=booking.revision,
        )
    return booking


def phase(booking: Booking, *, now: datetime) -> Phase:
    return phase_of(state=booking.state, start=booking.start, end=booking.end, now=now)


def after_wait(booking: Booking, *, now: datetime, clock: Callable[[], datetime]) -> datetime:
    """The instant to decide by: ``now``, unless the booking began or ended while locks were waited for.

    What has begun is released, never cancelled, and keeps its devices: its host may have opened them,
    and a grant that leaves the plan without an end is kept there.
    """
    later = clock()
    passed = any(now < edge <= later for edge in (booking.start, booking.end))
    return later if passed else now


def check_changeable(booking: Booking, *, now: datetime, touches_end: bool) -> Phase:
    """Upcoming or active, or ``NotPossibleNow`` with the reason.

    ``now`` is read after the locks: a host takes its last look at the plan 3 s before an end, and a
    change of it that comes later would not reach it.
    """
    current = phase(booking, now=now)
    if current is Phase.ENDED:
        raise NotPossibleNow(f"This booking ended at {instant(booking.end)}; it is history now.")
    if current not in {Phase.UPCOMING, Phase.ACTIVE}:
        raise NotPossibleNow(f"This booking is {current.value}.")
    if touches_end and current is Phase.ACTIVE and booking.end - now < LAST_CHANGE_BEFORE_END:
        raise NotPossibleNow("This booking ends within seconds; it is too late to change its end.")
    return current
