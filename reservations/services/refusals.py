"""What a refusal carries besides its reason: who stands in the way, and what could be had instead.

Read after the transaction has been rolled back, outside all locks: nobody waits for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from reservations.core import slots
from reservations.core.errors import Alternative, Blocker, Refused, SlotTaken
from reservations.core.period import Period, previous_on_grid
from reservations.models import Device
from reservations.selectors import busy, standing
from reservations.selectors.visible import Viewer, owner_shown
from reservations.services import placing, times
from reservations.services.actors import Actor
from reservations.services.judging import Case, judge
from reservations.services.parties import parties_of
from reservations.services.placing import Choice
from reservations.services.wishes import DeviceFilter, Wish

MAX_BLOCKERS = 20
MAX_ALTERNATIVES = 3


@dataclass(frozen=True)
class Obstacles:
    """Who stands in the way of a wish, and what could be had instead."""

    blockers: list[Blocker] = field(default_factory=list)
    alternatives: list[Alternative] = field(default_factory=list)


def explain(
    taken: SlotTaken, wish: Wish, *, actor: Actor, now: datetime, leave_out: int | None = None
) -> None:
    """Add to a refusal of this wish what stands in its way."""
    found = obstacles(wish, actor=actor, now=now, leave_out=leave_out)
    taken.blockers, taken.alternatives = found.blockers, found.alternatives


def obstacles(
    wish: Wish, *, actor: Actor, now: datetime, leave_out: int | None = None
) -> Obstacles:
    """Nothing is known of a wish without a start."""
    if wish.start is None:
        return Obstacles()
    choice = placing.choice_of(wish)
    period = placing.period_of(wish, now=now)
    who = parties_of(wish, actor)
    case = Case(who.owner, who.people, who.team, wish.kind, choice.candidates, period)
    return Obstacles(
        blockers(choice.candidates, period, viewer=actor.viewer(), leave_out=leave_out),
        alternatives(choice, case, now=now, leave_out=leave_out),
    )


def shorter(wish: Wish, refused: Refused, *, actor: Actor, now: datetime) -> list[Alternative]:
    """The longest booking from the same start that the rules allow, if length was the fault and it is free."""
    limits = [one.facts["limit_hours"] for one in refused.objections if "limit_hours" in one.facts]
    if not limits or wish.start is None:
        return []
    start = times.settled_start(wish.start, now=now)
    end = previous_on_grid(start + timedelta(hours=min(limits)), times.grid())
    if end <= start:
        return []
    legal = replace(wish, end=end, duration=None)
    try:
        place = placing.place(legal, placing.choice_of(legal), now=now)
    except SlotTaken:
        return []
    who = parties_of(legal, actor)
    case = Case(who.owner, who.people, who.team, legal.kind, place.devices, place.period)
    if not place.free or judge(case, standing.active_rules(now=now), now=now).objections:
        return []
    uuids = tuple(one.uuid for one in place.devices)
    return [Alternative(uuids, place.period.start, place.period.end)]


def blockers(
    devices: Sequence[Device], period: Period, *, viewer: Viewer, leave_out: int | None = None
) -> list[Blocker]:
    """The first bookings that stand in the way, with their owners where the viewer may know."""
    names = {one.pk: one.uuid for one in devices}
    rows = busy.overlapping(list(names), period, leave_out=leave_out)
    rows = rows.select_related("booking__owner").prefetch_related("booking__people")
    found = []
    for row in rows[:MAX_BLOCKERS]:
        owner = owner_shown(row.booking.owner, viewer.role_in(row.booking))
        found.append(
            Blocker(
                names[row.device_id],
                row.start,
                row.end,
                owner=owner["name"] if owner else None,
                booking=row.booking_id,
            )
        )
    return found


def alternatives(
    choice: Choice, case: Case, *, now: datetime, leave_out: int | None = None
) -> list[Alternative]:
    """The same time on similar devices, then the next times on those wanted; only what rules allow.

    ``case`` is what was refused.
    """
    found = placing.free_slots(
        choice,
        case.period.duration,
        after=max(case.period.start, now),
        limit=MAX_ALTERNATIVES,
        leave_out=leave_out,
    )
    devices = {one.uuid: one for one in choice.candidates}
    if choice.count == len(choice.candidates):
        similar = _similar(choice, case.period, leave_out=leave_out)
        devices |= {one.uuid: one for one in similar.candidates}
        found = [*_same_time(similar, case.period, now=now, leave_out=leave_out), *found]
    rules = standing.active_rules(now=now)
    allowed = []
    for one in found[:MAX_ALTERNATIVES]:
        offered = replace(
            case,
            devices=[devices[uuid] for uuid in one.devices],
            period=Period(one.start, one.end),
        )
        if not judge(offered, rules, now=now, leave_out=leave_out).objections:
            allowed.append(one)
    return allowed


def _same_time(
    choice: Choice, period: Period, *, now: datetime, leave_out: int | None
) -> list[Alternative]:
    after, horizon = max(now, period.start - placing.FIT), period.end + placing.FIT
    held = busy.busy_periods(choice.candidates, after=after, until=horizon, leave_out=leave_out)
    slot = slots.at(
        held, choice.request(period.duration), start=period.start, after=after, horizon=horizon
    )
    return [Alternative(slot.devices, slot.period.start, slot.period.end)] if slot else []


def _similar(choice: Choice, period: Period, *, leave_out: int | None) -> Choice:
    """Free devices of the same models; on one host if those that were named are on one."""
    models = {one.model for one in choice.candidates}
    hosts = {one.host_id for one in choice.candidates}
    alike = placing.suitable(DeviceFilter()).filter(model__in=models)
    found = placing.read(busy.free_among(alike, period, leave_out=leave_out))
    return Choice(found, choice.count, same_host=len(hosts) == 1)
