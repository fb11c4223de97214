"""Leading one person off one device: seen, warned, signalled, killed, gone or stuck.

A step is only taken on what was seen in this look; a signal is only sent once the gate was seen
closed to the person. The rung says how far it went, so that a restart goes on from there.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from reservations.core.enforcement import (
    Action,
    Fact,
    GateState,
    Holder,
    Kill,
    PlanState,
    Rung,
    RungKind,
    Tell,
    Terminate,
)
from reservations.core.rights import TICK_TOLERANCE, Rights
from reservations.core.wire import MAX_PIDS_PER_REPORT, HostSettings, ReportKind

WALK_UP_NOTICE = timedelta(minutes=15)
# SIGKILL is repeated for what forked meanwhile, each time after twice as long.
FIRST_GAP = timedelta(seconds=0.25)
MAX_PASSES = 5
# What five passes did not end, more will hardly: look again now and then.
STUCK_RETRY = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Case:
    """One person without a right on one device, and all that decides over the next step."""

    rights: Rights
    uid: int
    holders: tuple[Holder, ...]
    gate: GateState | None
    settings: HostSettings
    plan: PlanState
    enforcing_since: datetime | None
    now: datetime
    rung: Rung | None = None
    hold_fire: bool = False

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(sorted(holder.pid for holder in self.holders))

    @property
    def others_began_at(self) -> datetime | None:
        """When somebody else's booking began on the device; None when nobody needs it now."""
        return self.rights.began_at


def step(case: Case) -> tuple[Rung | None, list[Action]]:
    """The person's rung after this look, and what to do. No rung: nothing is held against them."""
    rung = _begun(case)
    if rung is None:
        return None, []
    rung = msgspec.structs.replace(rung, pids=case.pids)
    actions: list[Action] = []
    if case.rung is None or case.rung.kind != rung.kind:
        actions += _noticed(rung)
    rung, warned = _warn(case, rung)
    rung, signalled = _terminate(case, rung)
    rung, killed = _kill(case, rung)
    return rung, [*actions, *warned, *signalled, *killed]


def gone(rung: Rung) -> list[Action]:
    """What is told when a look no longer sees the person on the device."""
    if rung.kind == "walk_up" and rung.signalled_at is None:
        return []
    return [Tell(facts=(_fact("gone", rung),))]


def is_due_without_an_end(case: Case) -> bool:
    """Whether the person is to be signalled for the first time, and no end of theirs says so."""
    rung = _begun(case)
    if rung is None or rung.kind != "intruder" or rung.signalled_at is not None:
        return False
    return _may_signal(replace(case, hold_fire=False), rung) and bool(_topmost(case, rung))


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


def _begun(case: Case) -> Rung | None:
    """The rung to go on from; a new one when the person is first seen without a right."""
    kind, edge, booking = _judged(case)
    old = case.rung
    if old is not None and (old.signalled_at is not None or _still(old, kind, edge)):
        return old
    if kind is None or not case.plan.may_stop:
        return None if old and old.kind == "walk_up" else old
    return Rung(
        device=case.rights.device,
        uid=case.uid,
        kind=kind,
        since=case.now,
        edge=edge,
        booking=booking,
        warned_at=old.warned_at if old else None,
    )


def _still(old: Rung, kind: RungKind | None, edge: datetime | None) -> bool:
    """Whether it is the same matter; a walk-up's is the one booking that draws near."""
    return old.kind == kind and (kind != "walk_up" or old.edge == edge)


def _judged(case: Case) -> tuple[RungKind | None, datetime | None, int | None]:
    """Kind, edge and booking of the person's presence; no kind where there is nothing to say yet."""
    if case.rights.walk_up:
        return _judged_as_walk_up(case)
    began_at = case.others_began_at
    booking = case.rights.honoured[0].booking if case.rights.honoured else None
    walk_up_ended = case.settings.unbooked_use == "allow" and began_at is not None
    end = case.rights.ended.get(case.uid)
    if end is not None and _any_started_by(case.holders, end.end):
        if walk_up_ended and began_at is not None and end.end + TICK_TOLERANCE < began_at:
            return "walk_up", began_at, booking
        if began_at is None and not case.plan.confirms(end.end):
            return None, None, None  # they may have extended, and the news cannot reach us
        return "overrun", end.end, end.booking
    if walk_up_ended and began_at is not None and _any_started_by(case.holders, began_at):
        return "walk_up", began_at, booking
    return "intruder", None, booking


def _judged_as_walk_up(case: Case) -> tuple[RungKind | None, datetime | None, int | None]:
    """Nobody is in the way on an open device, until somebody else's booking draws near."""
    upcoming = case.rights.upcoming
    if not upcoming or upcoming[0].start - case.now > WALK_UP_NOTICE:
        return None, None, None
    if case.uid in {grant.uid for grant in upcoming}:
        return None, None, None
    return "walk_up", upcoming[0].start, upcoming[0].booking


def _any_started_by(holders: Iterable[Holder], instant: datetime) -> bool:
    return any(holder.started <= instant + TICK_TOLERANCE for holder in holders)


def _noticed(rung: Rung) -> list[Action]:
    return [] if rung.kind == "walk_up" else [Tell(facts=(_fact(rung.kind, rung),))]


def _warn(case: Case, rung: Rung) -> tuple[Rung, list[Action]]:
    """Once: that they have no grant, or that a walk-up ends. An overrun is signalled, not warned."""
    signals_at_once = rung.kind == "overrun" and case.settings.mode == "enforce"
    if case.settings.mode == "observe" or signals_at_once or rung.warned_at is not None:
        return rung, []
    text = _warning(case, rung)
    warned = msgspec.structs.replace(rung, warned_at=case.now)
    return warned, [Tell(facts=(_fact("warned", rung, text=text),))]


def _warning(case: Case, rung: Rung) -> str:
    if rung.kind == "walk_up":
        return f"booked by somebody else from {rung.edge:%Y-%m-%d %H:%M:%S} UTC"
    if rung.kind == "overrun":
        return "the booking has ended"
    if not _unadopted(case, rung):
        return "not booked; it may stay until somebody books the device"
    return "not booked"


def _terminate(case: Case, rung: Rung) -> tuple[Rung, list[Action]]:
    """SIGTERM to the topmost holders that have not had it; the first one starts the grace."""
    if rung.killed_at is not None or not _may_signal(case, rung):
        return rung, []
    pids = _topmost(case, rung)
    if not pids:
        return rung, []
    first = rung.signalled_at is None
    rung = msgspec.structs.replace(
        rung,
        signalled_at=rung.signalled_at or case.now,
        signalled=tuple(sorted({*rung.signalled, *pids})),
    )
    facts = (_fact("signalled", rung, pids=pids),) if first else ()
    return rung, [Terminate(device=rung.device, uid=rung.uid, pids=pids, facts=facts)]


def _kill(case: Case, rung: Rung) -> tuple[Rung, list[Action]]:
    """SIGKILL to all of them, again and again with growing gaps, until it is called stuck."""
    pids = tuple(sorted(holder.pid for holder in _unadopted(case, rung)))
    if not pids or not _may_signal(case, rung) or not _kill_is_due(case, rung):
        return rung, []
    if rung.passes == MAX_PASSES and rung.stuck_at is None:
        rung = msgspec.structs.replace(rung, stuck_at=case.now, last_pass_at=case.now)
        text = "SIGKILL did not end it: in the driver, or on a dead file system"
        return rung, [Tell(facts=(_fact("stuck", rung, text=text),))]
    first = rung.killed_at is None
    rung = msgspec.structs.replace(
        rung,
        killed_at=rung.killed_at or case.now,
        last_pass_at=case.now,
        passes=min(rung.passes + 1, MAX_PASSES),
    )
    facts = (_fact("killed", rung, pids=pids),) if first else ()
    return rung, [Kill(device=rung.device, uid=rung.uid, pids=pids, facts=facts)]


def _kill_is_due(case: Case, rung: Rung) -> bool:
    if rung.last_pass_at is not None:
        return case.now >= rung.last_pass_at + _gap(rung)
    if rung.signalled_at is None:
        return False
    limit = rung.signalled_at + timedelta(seconds=case.settings.grace_s)
    if case.others_began_at is not None:
        # Counted from when both are true: they were signalled, and somebody waits.
        both = max(rung.signalled_at, case.others_began_at)
        limit = min(limit, both + timedelta(seconds=case.settings.grace_followed_s))
    return case.now >= limit


def _gap(rung: Rung) -> timedelta:
    """How long after the last pass the next one is due."""
    if rung.stuck_at is not None:
        return STUCK_RETRY
    return FIRST_GAP * (1 << max(0, rung.passes - 1))


def _may_signal(case: Case, rung: Rung) -> bool:
    """Whether this person may be signalled now, and it is time."""
    gate = case.gate
    if gate is None or not gate.sound or gate.group_open or case.uid in gate.uids:
        return False
    if case.settings.mode != "enforce" or not case.plan.may_stop or case.rights.walk_up:
        return False
    if rung.signalled_at is None and case.hold_fire:
        return False
    return _is_confirmed(case, rung) and _warning_is_over(case, rung)


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


def _unadopted(case: Case, rung: Rung) -> tuple[Holder, ...]:
    """Those that may be stopped: older than the switch to `enforce` is adopted for a while."""
    since = case.enforcing_since
    if rung.kind != "intruder" or since is None or case.others_began_at is not None:
        return case.holders
    if case.now >= since + timedelta(hours=case.settings.adopt_h):
        return case.holders
    return tuple(holder for holder in case.holders if holder.started >= since)


def _topmost(case: Case, rung: Rung) -> tuple[int, ...]:
    return topmost(_unadopted(case, rung), signalled=rung.signalled)


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


def _fact(
    kind: ReportKind, rung: Rung, *, pids: tuple[int, ...] | None = None, text: str = ""
) -> Fact:
    return Fact(
        kind=kind,
        since=rung.since,
        device=rung.device,
        booking=rung.booking,
        uid=rung.uid,
        pids=(rung.pids if pids is None else pids)[:MAX_PIDS_PER_REPORT],
        # A warning is not late by anything.
        edge=None if kind == "warned" else rung.edge,
        text=text,
    )
