"""Cancelling what is to come and releasing what runs.

Freeing takes nothing from anybody, so no device is locked: only the owner, which orders it with other
changes of the same booking.
"""

from datetime import datetime

from reservations import announce
from reservations.clock import ticking
from reservations.core.errors import NotPossibleNow
from reservations.core.lifecycle import Phase, Verb
from reservations.models import Booking
from reservations.selectors.visible import instant
from reservations.services import allocating, editing, writes
from reservations.services.actors import Actor
from reservations.services.writes import Once

RELEASED = "released"


def release(
    booking_id: int,
    *,
    actor: Actor,
    now: datetime,
    expected_revision: int | None = None,
    once: Once | None = None,
    why: str = "",
) -> Booking:
    """End a running booking now; its devices are free at once. Before the start it is a cancel.

    Repeated, it changes nothing and answers the same.

    Raises:
        NotFound, Forbidden, Stale, NotPossibleNow, Busy
    """
    clock = ticking(now)

    def work() -> Booking:
        booking = editing.opened(
            booking_id, Verb.RELEASE, actor=actor, expected_revision=expected_revision
        )
        return finish(
            booking, actor=actor, now=editing.after_wait(booking, now=now, clock=clock), why=why
        )

    return writes.run(work, now=now, once=once)


def cancel(
    booking_id: int,
    *,
    actor: Actor,
    now: datetime,
    expected_revision: int | None = None,
    once: Once | None = None,
    why: str = "",
) -> Booking:
    """Give an upcoming or pending booking up. Repeated, it changes nothing and answers the same.

    Raises:
        NotFound, Forbidden, Stale, Busy
        NotPossibleNow: it has begun; then it can be released.
    """
    clock = ticking(now)

    def work() -> Booking:
        booking = editing.opened(
            booking_id, Verb.CANCEL, actor=actor, expected_revision=expected_revision
        )
        decided = editing.after_wait(booking, now=now, clock=clock)
        if editing.phase(booking, now=decided) is Phase.ACTIVE and booking.start < decided:
            raise NotPossibleNow(
                f"This booking began at {instant(booking.start)}; it can be released instead."
            )
        return finish(booking, actor=actor, now=decided, why=why)

    return writes.run(work, now=now, once=once)


def finish(booking: Booking, *, actor: Actor, now: datetime, why: str) -> Booking:
    """Release or cancel, whichever fits. The caller is in a transaction and holds the owner's lock."""
    phase = editing.phase(booking, now=now)
    if phase is Phase.CANCELLED or (phase is Phase.ENDED and booking.released_at is not None):
        return booking
    if phase in {Phase.ENDED, Phase.REJECTED}:
        ended = f"ended at {instant(booking.end)}" if phase is Phase.ENDED else "was rejected"
        raise NotPossibleNow(f"This booking {ended}; it is history now.")
    before = allocating.snapshot(booking)
    # At the very instant of its start nothing of a booking has passed yet.
    if phase is Phase.ACTIVE and booking.start < now:
        allocating.cut(booking, end=now)
        booking.released_at, booking.ended_reason = now, RELEASED
        allocating.save_change(booking, "end", "released_at", "ended_reason")
        verb = "released"
    else:
        allocating.let_go(booking)
        booking.state, booking.ended_reason = Booking.State.CANCELLED, "cancelled"
        allocating.save_change(booking, "state", "ended_reason")
        verb = "cancelled"
    allocating.tell(booking, verb, actor=actor, now=now, before=before, why=why)
    announce.nudge(allocating.hosts_of(booking))
    return booking
