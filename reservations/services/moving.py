"""Another time, other devices or another purpose for a booking; and a later end."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from reservations import announce
from reservations.clock import ticking
from reservations.core.errors import Invalid, NotPossibleNow, Refused, SlotTaken
from reservations.core.lifecycle import Phase, Verb
from reservations.core.period import Period
from reservations.models import Booking, Device
from reservations.selectors import bookings, busy
from reservations.selectors.standing import ActiveRule
from reservations.selectors.visible import current_allocations, instant
from reservations.services import (
    allocating,
    editing,
    judging,
    locks,
    placing,
    refusals,
    times,
    writes,
)
from reservations.services.actors import Actor
from reservations.services.judging import Case
from reservations.services.wishes import (
    Change,
    Faults,
    Wish,
    check_change,
    check_duration,
    check_instant,
)
from reservations.services.writes import Once

# An end that comes soon must not pass while a change of it waits for locks.
EDGE_LOCK_LIMIT_S = 1.0
# Browsers cut times to milliseconds: a start sent back like this is the same start.
SAME_INSTANT = timedelta(seconds=1)


def move(
    booking_id: int,
    change: Change,
    *,
    actor: Actor,
    now: datetime,
    expected_revision: int | None = None,
    once: Once | None = None,
) -> Booking:
    """Change a booking as one, all or nothing. Once it runs, only its end can move.

    Raises:
        Invalid, NotFound, Forbidden, Stale, NotPossibleNow, Refused, SlotTaken, Busy
    """
    clock = ticking(now)

    def work() -> Booking:
        check_change(change, now=now)
        rules = [] if change.only_words else judging.rules_for(actor, now=now)
        booking = editing.opened(
            booking_id, Verb.MOVE, actor=actor, rules=rules, expected_revision=expected_revision
        )
        if change.only_words:
            return _describe(booking, change, actor=actor, now=clock())
        phase = editing.check_changeable(booking, now=clock(), touches_end=True)
        return _move(booking, change, phase=phase, rules=rules, actor=actor, now=now)

    only_end = change.start is None and change.devices is None and not change.only_words
    limit_s = EDGE_LOCK_LIMIT_S if only_end else writes.LOCK_LIMIT_S
    try:
        return writes.run(work, now=now, lock_limit_s=limit_s, once=once)
    except SlotTaken as taken:
        _explain(taken, booking_id, change, actor=actor, now=now)
        raise


def extend(  # noqa: PLR0913 -- all of them by name
    booking_id: int,
    *,
    actor: Actor,
    now: datetime,
    duration: timedelta | None = None,
    end: datetime | None = None,
    once: Once | None = None,
    why: str = "",
) -> Booking:
    """A later end: ``end``, or ``duration`` after the present one, rounded up to the grid.

    Raises:
        Invalid, NotFound, Forbidden, NotPossibleNow, Refused, SlotTaken, Busy
    """
    clock = ticking(now)
    wanted: list[datetime] = []

    def work() -> Booking:
        _check_extension(duration, end, now=now)
        rules = judging.rules_for(actor, now=now)
        booking = editing.opened(booking_id, Verb.EXTEND, actor=actor, rules=rules)
        editing.check_changeable(booking, now=clock(), touches_end=True)
        before = allocating.snapshot(booking)
        new_end = _later_end(booking, duration, end, now=now)
        wanted[:] = [new_end]
        devices = locks.devices_by_key(one.device_id for one in current_allocations(booking))
        _shift(booking, devices, Period(booking.start, new_end), rules=rules, now=now)
        allocating.tell(booking, "extended", actor=actor, now=now, before=before, why=why)
        return booking

    try:
        return writes.run(work, now=now, lock_limit_s=EDGE_LOCK_LIMIT_S, once=once)
    except SlotTaken as taken:
        _explain(taken, booking_id, Change(end=wanted[0]), actor=actor, now=now)
        raise


def _describe(booking: Booking, change: Change, *, actor: Actor, now: datetime) -> Booking:
    """Change words only: nothing is judged anew."""
    before = allocating.snapshot(booking)
    editing.check_changeable(booking, now=now, touches_end=False)
    if change.purpose is not None:
        booking.purpose = change.purpose
    allocating.save_change(booking, "purpose")
    allocating.tell(booking, "edited", actor=actor, now=now, before=before)
    return booking


def _move(
    booking: Booking,
    change: Change,
    *,
    phase: Phase,
    rules: Sequence[ActiveRule],
    actor: Actor,
    now: datetime,
) -> Booking:
    before = allocating.snapshot(booking)
    period = _moved_period(booking, change, phase=phase, now=now)
    devices = _moved_devices(booking, change, phase=phase)
    if change.purpose is not None:
        booking.purpose = change.purpose
    if change.devices is not None:
        booking.pinned = True
    _shift(booking, devices, period, rules=rules, now=now)
    allocating.tell(booking, "moved", actor=actor, now=now, before=before)
    return booking


def _shift(
    booking: Booking,
    devices: Sequence[Device],
    period: Period,
    *,
    rules: Sequence[ActiveRule],
    now: datetime,
) -> None:
    """Judge what is asked for beyond what was promised, then write it. The devices are locked."""
    had = {one.device_id for one in current_allocations(booking)}
    added = [one for one in devices if one.pk not in had]
    shrinks = not added and booking.start <= period.start and period.end <= booking.end
    if not shrinks:
        _judge(booking, devices, period, added=added, rules=rules, now=now)
    touched = allocating.hosts_of(booking)
    allocating.rewrite(booking, devices=devices, period=period)
    booking.planned_end = period.end
    allocating.save_change(booking, "start", "end", "planned_end", "purpose", "pinned")
    announce.nudge(touched | allocating.hosts_of(booking))


def _judge(
    booking: Booking,
    devices: Sequence[Device],
    period: Period,
    *,
    added: Sequence[Device],
    rules: Sequence[ActiveRule],
    now: datetime,
) -> None:
    people = list(booking.people.all())
    case = Case(booking.owner, people, booking.team, booking.kind, devices, period)
    verdict = judging.judge(case, rules, now=now, added=added, leave_out=booking.pk)
    # What was approved or promised is not put into question again; more of it needs a new booking.
    if objections := [*verdict.objections, *verdict.doubts]:
        raise Refused(objections)
    keys = [one.pk for one in devices]
    if busy.overlapping(keys, period, leave_out=booking.pk).exists():
        raise SlotTaken("Somebody else has booked this already.")


def _moved_period(booking: Booking, change: Change, *, phase: Phase, now: datetime) -> Period:
    start, end = booking.start, booking.end
    if change.start is not None and abs(change.start - start) >= SAME_INSTANT:
        if phase is Phase.ACTIVE:
            raise NotPossibleNow(
                f"This booking began at {instant(start)}; only its end can be moved."
            )
        start = times.settled_start(change.start, now=now)
    if change.end is not None and change.end != end:
        end = times.settled_end(change.end, now=now)
    if end <= start:
        raise Invalid({"end": ["The end must be after the start."]})
    return Period(start, end)


def _moved_devices(booking: Booking, change: Change, *, phase: Phase) -> list[Device]:
    """All devices of the booking after the change; those before it are locked along with them."""
    had = {one.device_id: one.device.uuid for one in current_allocations(booking)}
    if change.devices is None or set(change.devices) == set(had.values()):
        return locks.devices_by_key(had)
    if phase is Phase.ACTIVE:
        raise NotPossibleNow("This booking has begun; its devices can no longer be changed.")
    wanted = set(change.devices)
    found = locks.devices(Device.objects.filter(uuid__in=wanted | set(had.values())))
    placing.check_all_found(change.devices, found)
    return [one for one in found if one.uuid in wanted]


def _check_extension(duration: timedelta | None, end: datetime | None, *, now: datetime) -> None:
    faults = Faults()
    check_duration(duration, faults)
    check_instant("end", end, faults, now=now)
    if (duration is None) == (end is None):
        faults.add("end", "Give either the new end or how much longer.")
    faults.check()


def _later_end(
    booking: Booking, duration: timedelta | None, end: datetime | None, *, now: datetime
) -> datetime:
    if end is None:
        return times.end_after(booking.end, duration or timedelta(0))
    if end <= booking.end:
        raise Invalid(
            {"end": [f"The new end must be after the present one ({instant(booking.end)})."]}
        )
    return times.settled_end(end, now=now)


def _explain(
    taken: SlotTaken, booking_id: int, change: Change, *, actor: Actor, now: datetime
) -> None:
    """The same answer that somebody gets who books what this booking was to become."""
    booking = bookings.one(booking_id)
    had = tuple(one.device.uuid for one in current_allocations(booking))
    wish = Wish(
        devices=change.devices or had,
        start=max(change.start or booking.start, now),
        end=change.end or booking.end,
        kind=booking.kind,
        owner=booking.owner.username,
    )
    refusals.explain(taken, wish, actor=actor, now=now, leave_out=booking.pk)
