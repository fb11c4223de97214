"""One device's gate: whom it should let in now.

It closes to whoever has no right any more at once. It opens to somebody new only when it has been
seen closed to everybody else, and nobody else was found on the device after that.
"""

from dataclasses import dataclass
from datetime import datetime

from reservations.core.enforcement import (
    Action,
    Fact,
    GateMark,
    GateState,
    HostGrant,
    Rung,
    SetGate,
    Tell,
)
from reservations.core.rights import Rights
from reservations.core.wire import ReportKind


@dataclass(frozen=True, slots=True)
class GateCase:
    """What decides over one gate. ``foreign``: uids without a right that are on the device."""

    rights: Rights
    observed: GateState
    mark: GateMark | None
    foreign: frozenset[int]
    always_open: frozenset[int]
    stuck: Rung | None = None

    @property
    def last_set(self) -> GateState | None:
        return self.mark.state if self.mark else None

    @property
    def kept(self) -> frozenset[int]:
        """Those whom the gate lets in already, and who have the right."""
        standing = self.last_set or (self.observed if self.observed.sound else GateState())
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


def gate_step(
    case: GateCase, *, told: frozenset[str], now: datetime
) -> tuple[list[Action], list[Fact]]:
    """The actions for one gate, and those facts among theirs that are told once per grant."""
    wanted = case.wanted
    once = [opened(grant) for grant in case.rights.honoured if grant.uid in wanted.uids]
    fresh = tuple(fact for fact in once if fact.id not in told)
    actions: list[Action] = []
    if case.observed != wanted:
        facts = (*_drift(case, now), *_closed(case, wanted), *fresh)
        actions.append(
            SetGate(
                device=case.rights.device,
                uids=wanted.uids,
                group_open=wanted.group_open,
                facts=facts,
            )
        )
    elif fresh:
        actions.append(Tell(facts=fresh))
    waits = [*_delayed(case, wanted), *_set_aside(case.rights)]
    delayed = tuple(fact for fact in waits if fact.id not in told)
    if delayed:
        actions.append(Tell(facts=delayed))
    return actions, [*once, *waits]


def opened(grant: HostGrant) -> Fact:
    """What is told once the device is open for this grant."""
    return _about("opened", grant, edge=grant.start)


def _set_aside(rights: Rights) -> list[Fact]:
    """Told to each person whose grant is in force and second to another."""
    by_hand = rights.by_hand
    if by_hand is None:
        return [_about("overlap", grant, edge=None) for grant in rights.disputed]
    text = "an administrator of the host has given the device to somebody else for a while"
    return [
        Fact(
            kind="delayed",
            since=max(grant.start, by_hand.start),
            device=grant.device,
            booking=grant.booking,
            uid=grant.uid,
            edge=max(grant.start, by_hand.start),
            text=text,
        )
        for grant in rights.disputed
    ]


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
    text = f"waiting until {len(case.foreign)} other user(s) are off the device"
    if case.stuck is not None:
        text = "a process on the device cannot be ended; it needs attention"
    return [
        Fact(
            kind="delayed",
            since=case.stuck.stuck_at or grant.start if case.stuck else grant.start,
            device=grant.device,
            booking=grant.booking,
            uid=grant.uid,
            edge=grant.start,
            text=text,
        )
        for grant in case.rights.honoured
        if grant.uid not in wanted.uids
    ]


def _drift(case: GateCase, now: datetime) -> list[Fact]:
    """Somebody else changed the gate since it was last set."""
    if case.last_set is None or case.observed == case.last_set:
        return []
    return [
        Fact(
            kind="drift",
            since=now,
            device=case.rights.device,
            text="somebody else changed who may open the device; it was put right",
        )
    ]


def _closed(case: GateCase, wanted: GateState) -> list[Fact]:
    """Whose end takes them out of the gate. An end that another grant continues is none."""
    before = case.observed.uids | (case.last_set.uids if case.last_set else frozenset())
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
