"""What a booking is at an instant, and what may be done with it then.

Upcoming, active and ended are never stored: they follow from what people decided and the time.
"""

from datetime import datetime, timedelta
from enum import StrEnum

# How far back a start still means "now".
START_TOLERANCE = timedelta(minutes=2)
# A host takes its last look at the plan 3 s before an end; a later change would not reach it. It
# takes an end for final once its plan is at most this much older than the end.
LAST_CHANGE_BEFORE_END = timedelta(seconds=5)


class Phase(StrEnum):
    PENDING = "pending"
    UPCOMING = "upcoming"
    ACTIVE = "active"
    ENDED = "ended"
    CANCELLED = "cancelled"
    REJECTED = "rejected"


class Role(StrEnum):
    """What somebody is to a booking; the strongest that fits."""

    OPERATOR = "operator"
    OWNER = "owner"
    MANAGER = "manager"  # manages the booking's team
    READER = "reader"  # a teammate, or one of the people the booking is for
    STRANGER = "stranger"


class Verb(StrEnum):
    MOVE = "move"
    EXTEND = "extend"
    RELEASE = "release"
    CANCEL = "cancel"
    APPROVE = "approve"
    REJECT = "reject"
    REBIND = "rebind"


_POSSIBLE: dict[Phase, tuple[Verb, ...]] = {
    Phase.PENDING: (Verb.CANCEL, Verb.APPROVE, Verb.REJECT),
    Phase.UPCOMING: (Verb.MOVE, Verb.EXTEND, Verb.CANCEL),
    Phase.ACTIVE: (Verb.MOVE, Verb.EXTEND, Verb.RELEASE),
}
_ALLOWED: dict[Role, frozenset[Verb]] = {
    Role.OPERATOR: frozenset(Verb),
    Role.OWNER: frozenset({Verb.MOVE, Verb.EXTEND, Verb.RELEASE, Verb.CANCEL}),
    Role.MANAGER: frozenset({Verb.RELEASE, Verb.CANCEL}),
    Role.READER: frozenset(),
    Role.STRANGER: frozenset(),
}


def phase_of(*, state: str, start: datetime, end: datetime, now: datetime) -> Phase:
    """The phase at ``now``; at the very instant of the end a booking has ended."""
    if state != "confirmed":
        return Phase(state)
    if now < start:
        return Phase.UPCOMING
    return Phase.ACTIVE if now < end else Phase.ENDED


def possible(phase: Phase, role: Role) -> list[Verb]:
    """What somebody in this role may do with a booking in this phase."""
    return [verb for verb in _POSSIBLE.get(phase, ()) if verb in _ALLOWED[role]]


def may(role: Role, verb: Verb) -> bool:
    """Whether the role allows the verb in any phase at all."""
    return verb in _ALLOWED[role]


def shows_all(role: Role) -> bool:
    """Whether somebody in this role reads the booking whole."""
    return role is not Role.STRANGER
