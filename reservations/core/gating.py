"""One device's gate: whom it should let in now.

It closes to whoever has no right any more at once. It opens to somebody new only when it has been
seen closed to everybody else, and nobody else was found on the device after that. One that somebody
else keeps changing is left alone (`drift.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

import msgspec

from reservations.core import drift
from reservations.core.enforcement import (
    Action,
    Fact,
    GateMark,
    GateState,
    HostGrant,
    Party,
    Rung,
    SetGate,
    Tell,
)
from reservations.core.rights import Rights, turn_of
from reservations.core.wire import ReportKind


@dataclass(frozen=True, slots=True)
class GateCase:
    """What decides over one gate. ``foreign``: who is on the device without a right, and has to leave."""

    rights: Rights
    observed: GateState
    mark: GateMark
    foreign: frozenset[Party]
    always_open: frozenset[int]
    enforcing_since: datetime | None
    stuck: Rung | None = None

    def turn_of(self, grant: HostGrant) -> datetime:
        return turn_of(grant, self.rights.given_back, enforcing_since=self.enforcing_since)

    @property
    def kept(self) -> frozenset[int]:
        """Those whom the gate lets in already, and who have the right."""
        standing = self.mark.state or (self.observed if self.observed.sound else GateState())
        return self.rights.uids & standing.uids

    @property
    def closed_to_others(self) -> bool:
        return (
            self.observed.sound
            and not self.observed.group_open
            and self.observed.uids <= self.rights.uids | self.always_open
        )

    @property
    def wanted(self) -> GateState:
        free = self.closed_to_others and not self.foreign
        admitted = self.rights.uids if free else self.kept
        # Root passes every gate, and no gate names it.
        return GateState(uids=(self.always_open | admitted) - {0}, group_open=self.rights.walk_up)


@dataclass(frozen=True, slots=True)
class GateStep:
    """What to do about one gate. ``once``: those facts among its actions' that are told once per grant."""

    actions: tuple[Action, ...]
    once: tuple[Fact, ...]
    mark: GateMark


def gate_step(case: GateCase, *, told: frozenset[str], now: datetime) -> GateStep:
    """Sets the gate where it differs from what is wanted, unless somebody else keeps changing it."""
    wanted = case.wanted
    response = drift.respond(_known(case, wanted), case.observed, now=now)
    stands = case.observed == wanted
    if not stands and not response.may_set:
        return _left_alone(case, response, told)
    once = tuple(
        opened(grant, case.turn_of(grant))
        for grant in case.rights.honoured
        if grant.uid in wanted.uids
    )
    waits = (*_delayed(case, wanted), *_set_aside(case.rights))
    facts = (*response.facts, *(() if stands else _closed(case, wanted)), *_untold(once, told))
    moves = _tell(facts) if stands else (_set(case, wanted, facts),)
    return GateStep(
        actions=(*moves, *_tell(_untold(waits, told))),
        once=(*once, *waits),
        mark=msgspec.structs.replace(response.mark, state=wanted),
    )


def _known(case: GateCase, wanted: GateState) -> GateMark:
    """A change that leads where we were going is none."""
    if case.observed == wanted:
        return msgspec.structs.replace(case.mark, state=wanted)
    return case.mark


def _set(case: GateCase, wanted: GateState, facts: tuple[Fact, ...]) -> SetGate:
    return SetGate(
        device=case.rights.device,
        uids=wanted.uids,
        group_open=wanted.group_open,
        facts=facts,
    )


def _left_alone(case: GateCase, response: drift.Response, told: frozenset[str]) -> GateStep:
    """Nothing is set and nothing claimed; whom it was not opened for is told why."""
    text = "something else on the host keeps changing who may open the device"
    waiting = [
        grant for grant in case.rights.honoured if opened(grant, case.turn_of(grant)).id not in told
    ]
    waits = tuple(_delay(grant, text, turn=case.turn_of(grant)) for grant in waiting)
    return GateStep(
        actions=(*_tell(response.facts), *_tell(_untold(waits, told))),
        once=waits,
        mark=response.mark,
    )


def _untold(facts: Iterable[Fact], told: frozenset[str]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if fact.id not in told)


def _tell(facts: tuple[Fact, ...]) -> tuple[Action, ...]:
    return (Tell(facts=facts),) if facts else ()


def opened(grant: HostGrant, since: datetime) -> Fact:
    """What is told once the device is open for this grant, whose turn came at ``since``."""
    return msgspec.structs.replace(_about("opened", grant, edge=since), since=since)


def _set_aside(rights: Rights) -> list[Fact]:
    """Told to each person whose grant is in force and second to another."""
    by_hand = rights.by_hand
    if by_hand is None:
        return [_about("overlap", grant, edge=None) for grant in rights.disputed]
    text = "an administrator of the host has given the device to somebody else for a while"
    began = by_hand.start
    return [_delay(grant, text, turn=max(grant.start, began)) for grant in rights.disputed]


def _about(kind: ReportKind, grant: HostGrant, *, edge: datetime | None) -> Fact:
    return Fact(
        kind=kind,
        since=grant.start,
        device=grant.device,
        booking=grant.booking,
        uid=grant.uid,
        edge=edge,
    )


def _delayed(case: GateCase, wanted: GateState) -> list[Fact]:
    """Told to each person who has the right but must wait, and again when the wait has no end."""
    if not case.foreign:
        return []
    stuck_at = case.stuck.stuck_at if case.stuck else None
    others = len(case.foreign)
    text = (
        "somebody else has to leave it first"
        if others == 1
        else f"{others} others have to leave it first"
    )
    if stuck_at is not None:
        text = "a process on the device cannot be ended; it needs attention"
    return [
        _delay(grant, text, turn=case.turn_of(grant), since=stuck_at)
        for grant in case.rights.honoured
        if grant.uid not in wanted.uids
    ]


def _delay(grant: HostGrant, text: str, *, turn: datetime, since: datetime | None = None) -> Fact:
    fact = _about("delayed", grant, edge=turn)
    return msgspec.structs.replace(fact, since=since or turn, text=text)


def _closed(case: GateCase, wanted: GateState) -> list[Fact]:
    """Whose end takes them out of the gate. An end that another grant continues is none."""
    before = case.observed.uids | (case.mark.state.uids if case.mark.state else frozenset())
    leaving = sorted(before - wanted.uids - case.rights.uids)
    over = [case.rights.ended[uid] for uid in leaving if uid in case.rights.ended]
    return [
        Fact(
            kind="closed",
            since=grant.end,
            device=grant.device,
            booking=grant.booking,
            uid=grant.uid,
            edge=grant.end,
            text="open to everybody until the next booking" if wanted.group_open else "",
        )
        for grant in over
    ]
