"""Signals to one party on one device: SIGTERM or a stop of the unit, the grace, SIGKILL, stuck.

A signal is only sent once the gate was seen closed to the party, and never while anything is in doubt.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from reservations.core.enforcement import (
    Action,
    Fact,
    Holder,
    Keeper,
    Kill,
    Rung,
    StopUnit,
    Tell,
    Terminate,
)
from reservations.core.judging import Case, unadopted
from reservations.core.wire import MAX_PIDS_PER_REPORT, MAX_TEXT, HostSettings, ReportKind

# SIGKILL is repeated for what forked meanwhile, each time after twice as long.
FIRST_GAP = timedelta(seconds=0.25)
MAX_PASSES = 5
# What five passes did not end, more will hardly: look again now and then.
STUCK_RETRY = timedelta(minutes=5)


def ask(case: Case, rung: Rung) -> tuple[Rung, list[Action]]:
    """SIGTERM to the topmost holders that have not had it; the first one starts the grace.

    What a unit keeps running is stopped through that, and again for whatever it has started since.
    """
    if not _is_time_to_ask(case, rung):
        return rung, []
    holders = unadopted(case, rung.kind)
    fresh = set(topmost(holders, signalled=() if rung.stuck_at else rung.signalled))
    units = _units(case, holders, fresh)
    kept = {pid for pids in units.values() for pid in pids}
    plain = tuple(sorted(fresh - kept)) if rung.killed_at is None else ()
    if not plain and not units:
        return rung, []
    asked = (*rung.signalled, *plain, *kept)
    begun = rung.signalled_at is None
    rung = msgspec.structs.replace(
        rung, signalled_at=rung.signalled_at or case.now, signalled=tuple(sorted(set(asked)))
    )
    told = (fact("signalled", rung, pids=(*plain, *sorted(kept))),) if begun else ()
    return rung, _requests(case, rung, plain=plain, units=units, told=told)


def kill(case: Case, rung: Rung) -> tuple[Rung, list[Action]]:
    """SIGKILL to all of them, again and again with growing gaps, until it is called stuck."""
    pids = tuple(sorted(holder.pid for holder in unadopted(case, rung.kind)))
    if not pids or not may_signal(case, rung) or not _kill_is_due(case, rung):
        return rung, []
    if rung.passes == MAX_PASSES and rung.stuck_at is None:
        rung = msgspec.structs.replace(rung, stuck_at=case.now, last_pass_at=case.now)
        return rung, [Tell(facts=(fact("stuck", rung, text=_why_stuck(case, rung)),))]
    first = rung.killed_at is None
    rung = msgspec.structs.replace(
        rung,
        killed_at=rung.killed_at or case.now,
        last_pass_at=case.now,
        passes=min(rung.passes + 1, MAX_PASSES),
    )
    facts = (fact("killed", rung, pids=pids),) if first else ()
    return rung, [Kill(device=rung.device, uid=rung.uid, pids=pids, facts=facts)]


def may_signal(case: Case, rung: Rung) -> bool:
    """Whether this party may be signalled now, and it is time."""
    gate = case.gate
    if gate is None or not gate.sound or gate.group_open or case.party.uid in gate.uids:
        return False
    if case.settings.mode != "enforce" or not case.plan.may_stop or case.rights.walk_up:
        return False
    if case.tolerated or (rung.signalled_at is None and case.hold_fire):
        return False
    return _is_confirmed(case, rung) and _warning_is_over(case, rung)


def to_be_stopped(case: Case, rung: Rung) -> tuple[int, ...]:
    """All that may be signalled now, whether or not it was before."""
    if not may_signal(case, rung):
        return ()
    return tuple(holder.pid for holder in unadopted(case, rung.kind))


def next_due(rung: Rung, settings: HostSettings) -> list[datetime]:
    """The instants at which time alone moves this rung on."""
    if rung.last_pass_at is not None:
        return [rung.last_pass_at + _gap(rung)]
    if rung.signalled_at is not None:
        graces = (settings.grace_s, min(settings.grace_s, settings.grace_followed_s))
        return [rung.signalled_at + timedelta(seconds=grace_s) for grace_s in graces]
    if rung.kind == "intruder" and rung.warned_at is not None:
        return [rung.warned_at + timedelta(seconds=settings.intruder_grace_s)]
    return []


def topmost(holders: Sequence[Holder], *, signalled: Iterable[int] = ()) -> tuple[int, ...]:
    """Holders that have no holder above them, and were not signalled, nor anybody above them.

    A signal to a worker would end its parent before that has saved its work.
    """
    told = set(signalled)
    held = {holder.pid for holder in holders} | told
    return tuple(
        sorted(
            {
                holder.pid
                for holder in holders
                if holder.pid not in told and held.isdisjoint(holder.ancestors)
            }
        )
    )


def fact(
    kind: ReportKind, rung: Rung, *, pids: tuple[int, ...] | None = None, text: str = ""
) -> Fact:
    """What is told of a party on its way off a device."""
    return Fact(
        kind=kind,
        since=rung.since,
        device=rung.device,
        booking=rung.booking,
        uid=rung.uid,
        container=rung.container,
        pids=(rung.pids if pids is None else pids)[:MAX_PIDS_PER_REPORT],
        # A warning is not late by anything.
        edge=None if kind == "warned" else rung.edge,
        text=text,
    )


def _is_time_to_ask(case: Case, rung: Rung) -> bool:
    """Until SIGKILL has been sent, and whenever something stuck is tried again."""
    tried_again = rung.stuck_at is not None and _kill_is_due(case, rung)
    return (rung.killed_at is None or tried_again) and may_signal(case, rung)


def _units(case: Case, holders: Iterable[Holder], fresh: set[int]) -> dict[Keeper, tuple[int, ...]]:
    """The units to stop, each with all that it keeps on this device."""
    kept: defaultdict[Keeper, list[int]] = defaultdict(list)
    for holder in holders:
        if holder.keeper in case.units:
            kept[holder.keeper].append(holder.pid)
    return {
        keeper: tuple(sorted(pids))
        for keeper, pids in sorted(kept.items(), key=lambda one: (one[0].engine, one[0].name))
        if not fresh.isdisjoint(pids)
    }


def _requests(
    case: Case,
    rung: Rung,
    *,
    plain: tuple[int, ...],
    units: dict[Keeper, tuple[int, ...]],
    told: tuple[Fact, ...],
) -> list[Action]:
    """The first of them carries what is told."""
    grace_s = max(0.0, (_kill_at(case, rung) - case.now).total_seconds())
    actions: list[Action] = []
    if plain:
        actions.append(Terminate(device=rung.device, uid=rung.uid, pids=plain, facts=told))
        told = ()
    for keeper, pids in units.items():
        actions.append(
            StopUnit(
                device=rung.device,
                uid=rung.uid,
                keeper=keeper,
                pids=pids,
                grace_s=grace_s,
                facts=told,
            )
        )
        told = ()
    return actions


def _why_stuck(case: Case, rung: Rung) -> str:
    restarted = (holder.keeper for holder in case.holders if holder.pid not in rung.signalled)
    names = sorted({keeper.name for keeper in restarted if keeper})
    if names:
        return f"it is started again and again: {', '.join(names)}"[:MAX_TEXT]
    return "SIGKILL did not end it: in the driver, or on a dead file system"


def _kill_is_due(case: Case, rung: Rung) -> bool:
    if rung.last_pass_at is not None:
        return case.now >= rung.last_pass_at + _gap(rung)
    return rung.signalled_at is not None and case.now >= _kill_at(case, rung)


def _kill_at(case: Case, rung: Rung) -> datetime:
    """When the grace is over."""
    signalled_at = rung.signalled_at or case.now
    limit = signalled_at + timedelta(seconds=case.settings.grace_s)
    if case.others_began_at is None:
        return limit
    # Counted from when both are true: they were signalled, and somebody waits.
    both = max(signalled_at, case.others_began_at)
    return min(limit, both + timedelta(seconds=case.settings.grace_followed_s))


def _gap(rung: Rung) -> timedelta:
    """How long after the last pass the next one is due."""
    if rung.stuck_at is not None:
        return STUCK_RETRY
    return FIRST_GAP * (1 << max(0, rung.passes - 1))


def _is_confirmed(case: Case, rung: Rung) -> bool:
    """An end that nobody confirmed stops nobody, unless somebody else needs the device now."""
    if rung.kind != "overrun" or rung.edge is None:
        return True
    return case.others_began_at is not None or case.plan.confirms(rung.edge)


def _warning_is_over(case: Case, rung: Rung) -> bool:
    if rung.kind != "intruder":
        return True
    grace = timedelta(seconds=case.settings.intruder_grace_s)
    return rung.warned_at is not None and case.now >= rung.warned_at + grace
