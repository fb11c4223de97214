"""What it is to be on a device without a right: an overrun, an intrusion, or the end of a walk-up."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from reservations.core.enforcement import (
    GateState,
    Holder,
    Keeper,
    Party,
    PlanState,
    Rung,
    RungKind,
)
from reservations.core.rights import TICK_TOLERANCE, Rights
from reservations.core.wire import HostSettings

WALK_UP_NOTICE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Case:
    """One party without a right on one device, and all that decides over the next step.

    ``gate`` is None where it cannot be read or somebody else rules it. ``tolerated``: a container that
    is only reported. ``units`` may be stopped whole.
    """

    rights: Rights
    party: Party
    holders: tuple[Holder, ...]
    gate: GateState | None
    settings: HostSettings
    plan: PlanState
    enforcing_since: datetime | None
    now: datetime
    rung: Rung | None = None
    tolerated: bool = False
    hold_fire: bool = False
    units: frozenset[Keeper] = frozenset()

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(sorted(holder.pid for holder in self.holders))

    @property
    def others_began_at(self) -> datetime | None:
        """When somebody else's booking began on the device; None when nobody needs it now."""
        return self.rights.began_at


@dataclass(frozen=True, slots=True)
class Judgement:
    """``edge`` is the end of their right or of the walk-up; ``booking`` the one concerned."""

    kind: RungKind
    edge: datetime | None = None
    booking: int | None = None


def judged(case: Case) -> Judgement | None:
    """None where there is nothing to say yet."""
    if case.rights.walk_up:
        return _judged_as_walk_up(case)
    began_at = case.others_began_at
    end = case.rights.ended.get(case.party.uid)
    ended_at = end.end if end and _is_their_end(case, end.end) else None
    walk_up = _ended_walk_up(case, ended_at)
    if walk_up is not None:
        return walk_up
    if end is None or ended_at is None:
        return Judgement("intruder", booking=_booking_now(case))
    if began_at is None and not case.plan.confirms(ended_at):
        return None  # they may have extended, and the news cannot reach us
    return Judgement("overrun", ended_at, end.booking)


def unadopted(case: Case, kind: RungKind) -> tuple[Holder, ...]:
    """Those that may be stopped: what is older than the switch to `enforce` is adopted for a while."""
    since = case.enforcing_since
    if kind != "intruder" or since is None or case.others_began_at is not None:
        return case.holders
    if case.now >= since + timedelta(hours=case.settings.adopt_h):
        return case.holders
    return tuple(holder for holder in case.holders if holder.started >= since)


def _is_their_end(case: Case, end: datetime) -> bool:
    """Whether what runs on is an overrun of that end: it began before it, and the host enforced then."""
    if case.party.container is not None:
        return False
    if case.enforcing_since is not None and end <= case.enforcing_since:
        return False
    return _any_started_by(case.holders, end)


def _ended_walk_up(case: Case, ended_at: datetime | None) -> Judgement | None:
    """Whether they were on the device while it was open to everybody, until a booking began."""
    began_at = case.others_began_at
    if case.settings.unbooked_use != "allow" or began_at is None:
        return None
    if ended_at is not None:
        was_walk_up = ended_at + TICK_TOLERANCE < began_at
    else:
        was_walk_up = _any_started_by(case.holders, began_at)
    return Judgement("walk_up", began_at, _booking_now(case)) if was_walk_up else None


def _judged_as_walk_up(case: Case) -> Judgement | None:
    """Nobody is in the way on an open device, until somebody else's booking draws near."""
    upcoming = case.rights.upcoming
    if not upcoming or upcoming[0].start - case.now > WALK_UP_NOTICE:
        return None
    if case.party.uid in {grant.uid for grant in upcoming}:
        return None
    return Judgement("walk_up", upcoming[0].start, upcoming[0].booking)


def _booking_now(case: Case) -> int | None:
    return case.rights.honoured[0].booking if case.rights.honoured else None


def _any_started_by(holders: Iterable[Holder], instant: datetime) -> bool:
    return any(holder.started <= instant + TICK_TOLERANCE for holder in holders)
