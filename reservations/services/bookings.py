"""Every verb on bookings. Pages, API, tasks, commands and the hub all end here.

Each verb is one transaction: lock, look, decide, write, announce. All raise `core.errors` only (and
`writes.Replayed` for a request that took effect before).
"""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reservations import announce
from reservations.core.errors import Alternative, Blocker, Objection, Refused, SlotTaken
from reservations.core.period import Period
from reservations.core.rules.base import Usage
from reservations.models import Booking, Device
from reservations.services import (
    allocating,
    judging,
    locks,
    parties,
    placing,
    refusals,
    times,
    writes,
)
from reservations.services.actors import Actor
from reservations.services.approving import approve, reject
from reservations.services.ending import cancel, release
from reservations.services.judging import Case
from reservations.services.moving import SAME_INSTANT, extend, move
from reservations.services.rebinding import rebind, rebind_lost_devices
from reservations.services.wishes import Change, DeviceFilter, Wish, check_wish
from reservations.services.writes import Once

__all__ = [
    "Change",
    "Check",
    "DeviceFilter",
    "Wish",
    "approve",
    "book",
    "cancel",
    "check",
    "extend",
    "move",
    "rebind",
    "rebind_lost_devices",
    "reject",
    "release",
]

# Hosts ask for their plan every minute by themselves: what begins later is in it long before it counts,
# and a busy hour of planning ahead does not make the whole fleet fetch.
NUDGED_AHEAD = timedelta(minutes=10)


@dataclass(frozen=True)
class Check:
    """What booking would come to. ``devices`` and ``period`` are None where nothing fits at all."""

    free: bool = False
    period: Period | None = None
    devices: list[Device] | None = None
    blockers: list[Blocker] = field(default_factory=list)
    objections: list[Objection] = field(default_factory=list)
    alternatives: list[Alternative] = field(default_factory=list)
    quota: list[Usage] = field(default_factory=list)
    warnings: list[Objection] = field(default_factory=list)
    needs_approval: bool = False


def book(wish: Wish, *, actor: Actor, now: datetime, once: Once | None = None) -> Booking:
    """Book all devices of the wish for its period, or none.

    Where a rule asks for approval the booking is pending, and holds nothing yet.

    Raises:
        Invalid, Forbidden, Refused, SlotTaken, Busy; with ``once`` also Replayed, IdempotencyMismatch
    """
    try:
        return writes.run(lambda: _book(wish, actor=actor, now=now), now=now, once=once)
    except SlotTaken as taken:
        refusals.explain(taken, wish, actor=actor, now=now)
        raise
    except Refused as refused:
        refused.alternatives = refusals.shorter(wish, refused, actor=actor, now=now)
        raise


def check(wish: Wish, *, actor: Actor, now: datetime, leave_out: int | None = None) -> Check:
    """What ``book`` would come to; with ``leave_out``, what moving that booking would. Writes nothing.

    Raises:
        Invalid, Forbidden
    """
    check_wish(wish, now=now)
    wish, began = _what_remains(wish, leave_out, now=now)
    who = parties.parties_of(wish, actor)
    try:
        choice = placing.choice_of(wish)
        place = placing.place(wish, choice, now=now, leave_out=leave_out)
    except Refused as refused:
        return Check(objections=refused.objections)
    except SlotTaken:
        found = refusals.obstacles(wish, actor=actor, now=now, leave_out=leave_out)
        return Check(blockers=found.blockers, alternatives=found.alternatives)
    found = refusals.Obstacles()
    if not place.free:
        found = refusals.obstacles(wish, actor=actor, now=now, leave_out=leave_out)
    period = Period(began or place.period.start, place.period.end)
    case = Case(who.owner, who.people, who.team, wish.kind, place.devices, period)
    rules = judging.rules_for(actor, now=now)
    verdict = judging.judge(case, rules, now=now, leave_out=leave_out)
    return Check(
        free=place.free,
        period=period,
        devices=place.devices,
        blockers=found.blockers,
        objections=verdict.objections,
        alternatives=found.alternatives,
        quota=verdict.usage,
        warnings=verdict.warnings,
        needs_approval=verdict.needs_approval,
    )


def _what_remains(
    wish: Wish, booking_id: int | None, *, now: datetime
) -> tuple[Wish, datetime | None]:
    """The part still to come of a running booking whose end is to move, and when it began."""
    if booking_id is None or wish.start is None:
        return wish, None
    booking = Booking.objects.filter(pk=booking_id, start__lte=now, end__gt=now).first()
    if booking is None or abs(wish.start - booking.start) >= SAME_INSTANT:
        return wish, None
    end = wish.end or times.end_after(booking.start, wish.duration or times.grid())
    return replace(wish, start=now, end=end, duration=None), booking.start


def _book(wish: Wish, *, actor: Actor, now: datetime) -> Booking:
    check_wish(wish, now=now)
    who = parties.parties_of(wish, actor)
    rules = judging.rules_for(actor, now=now)
    team = who.team.pk if who.team else None
    owner = locks.people(owner=who.owner.pk, team=team, rules=rules)
    choice = placing.choice_of(wish, read_devices=locks.devices, read_named=locks.devices_named)
    place = placing.place(wish, choice, now=now)
    case = Case(owner, who.people, who.team, wish.kind, place.devices, place.period)
    verdict = judging.judge(case, rules, now=now)
    if verdict.objections:
        raise Refused(verdict.objections)
    if not place.free:
        raise SlotTaken("Somebody else has booked this already.")
    return _insert(wish, case, pending=verdict.needs_approval, actor=actor, now=now)


def _insert(wish: Wish, case: Case, *, pending: bool, actor: Actor, now: datetime) -> Booking:
    booking = Booking(
        owner=case.owner,
        team=case.team,
        start=case.period.start,
        end=case.period.end,
        planned_end=case.period.end,
        state=Booking.State.PENDING if pending else Booking.State.CONFIRMED,
        kind=wish.kind,
        purpose=wish.purpose,
        keep_if_free=wish.keep_if_free,
        early_signal=wish.early_signal,
        pinned=bool(wish.devices),
        source=actor.source,
        created=now,
        created_by=actor.user or case.owner,
    )
    allocating.insert(booking, devices=case.devices, people=case.people)
    allocating.tell(booking, "booked", actor=actor, now=now)
    if booking.start <= now + NUDGED_AHEAD:
        announce.nudge(allocating.hosts_of(booking))
    return booking
