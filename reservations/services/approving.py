"""Saying yes or no to a pending booking. It held nothing so far, so a yes looks again."""

from datetime import datetime

from reservations import announce
from reservations.core.errors import NotPossibleNow, Refused, SlotTaken
from reservations.core.lifecycle import Phase, Verb
from reservations.core.period import Period
from reservations.models import Booking
from reservations.selectors import busy
from reservations.selectors.visible import current_allocations, instant
from reservations.services import allocating, editing, judging, locks, writes
from reservations.services.actors import Actor
from reservations.services.judging import Case


def approve(booking_id: int, *, actor: Actor, now: datetime) -> Booking:
    """Confirm a pending booking if it still fits; one whose start has passed starts now.

    Raises:
        NotFound, Forbidden, NotPossibleNow, Refused, SlotTaken, Busy
    """

    def work() -> Booking:
        rules = judging.rules_for(actor, now=now)
        booking = editing.opened(booking_id, Verb.APPROVE, actor=actor, rules=rules)
        _check_pending(booking, now=now)
        if booking.end <= now:
            raise NotPossibleNow(f"The time asked for has passed ({instant(booking.end)}).")
        before = allocating.snapshot(booking)
        period = Period(max(booking.start, now), booking.end)
        devices = locks.devices_by_key(one.device_id for one in current_allocations(booking))
        people = list(booking.people.all())
        case = Case(booking.owner, people, booking.team, booking.kind, devices, period)
        verdict = judging.judge(case, rules, now=now, leave_out=booking.pk)
        if verdict.objections:
            raise Refused(verdict.objections)
        keys = [one.pk for one in devices]
        if busy.overlapping(keys, period, leave_out=booking.pk).exists():
            raise SlotTaken("Somebody else has booked this meanwhile.")
        booking.state = Booking.State.CONFIRMED
        allocating.rewrite(booking, devices=devices, period=period)
        allocating.save_change(booking, "state", "start")
        allocating.tell(booking, "approved", actor=actor, now=now, before=before)
        announce.nudge(allocating.hosts_of(booking))
        return booking

    return writes.run(work, now=now)


def reject(booking_id: int, *, actor: Actor, now: datetime, why: str = "") -> Booking:
    """Say no to a pending booking.

    Raises:
        NotFound, Forbidden, NotPossibleNow, Busy
    """

    def work() -> Booking:
        booking = editing.opened(booking_id, Verb.REJECT, actor=actor)
        _check_pending(booking, now=now)
        before = allocating.snapshot(booking)
        booking.state, booking.ended_reason = Booking.State.REJECTED, "rejected"
        allocating.save_change(booking, "state", "ended_reason")
        allocating.tell(booking, "rejected", actor=actor, now=now, before=before, why=why)
        return booking

    return writes.run(work, now=now)


def _check_pending(booking: Booking, *, now: datetime) -> None:
    phase = editing.phase(booking, now=now)
    if phase is not Phase.PENDING:
        raise NotPossibleNow(f"This booking is {phase.value}, it waits for nobody.")
