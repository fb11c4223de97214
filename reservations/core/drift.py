"""Somebody else changes a gate: it is put right, up to a limit. Beyond that two managers would only fight.

A gate that was given up is moved on while it stands as it was last set, and is left alone otherwise; while
it is given up nobody on its device is signalled. Now and then it is set once more: if that lasts, it is
Berth's again.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from reservations.core.enforcement import Fact, GateMark, GateState

# So many repairs within so long are made; the next change is left as it is ...
REPAIRS = 5
WITHIN = timedelta(minutes=1)
# ... for so long, ...
QUIET = timedelta(minutes=10)
# ... and what was set then has to last so long.
TRIAL = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Response:
    """Whether the gate may be set now, what to remember of it, and what to tell once that is done."""

    mark: GateMark
    may_set: bool
    facts: tuple[Fact, ...] = ()


def respond(mark: GateMark, observed: GateState, *, now: datetime) -> Response:
    """What to make of the difference between how a gate was last set and how it is found."""
    if mark.given_up_at is not None:
        return _respond_given_up(mark, mark.given_up_at, observed, now=now)
    if mark.state is None or mark.state == observed:
        return Response(mark, may_set=True)
    recent = tuple(at for at in mark.repairs if at > now - WITHIN)
    if len(recent) < REPAIRS:
        text = "somebody else changed who may open the device; it was put right"
        repaired = msgspec.structs.replace(mark, repairs=(*recent, now))
        return Response(repaired, may_set=True, facts=(_fact("drift", mark, since=now, text=text),))
    text = "something else on the host keeps changing who may open the device; it is left alone"
    given_up = msgspec.structs.replace(mark, repairs=(), given_up_at=now, tried_at=now)
    return Response(
        given_up, may_set=False, facts=(_fact("drift_given_up", mark, since=now, text=text),)
    )


def next_due(mark: GateMark) -> list[datetime]:
    """The instants at which time alone changes what is made of this gate."""
    if mark.given_up_at is None or mark.tried_at is None:
        return []
    return [mark.tried_at + TRIAL, mark.tried_at + QUIET]


def _respond_given_up(
    mark: GateMark, given_up_at: datetime, observed: GateState, *, now: datetime
) -> Response:
    tried_at = mark.tried_at or given_up_at
    if mark.state == observed:
        if now < tried_at + TRIAL:
            return Response(mark, may_set=True)
        text = "nobody else changes any more who may open the device; Berth looks after it again"
        ours = msgspec.structs.replace(mark, given_up_at=None, tried_at=None)
        return Response(ours, may_set=True, facts=(_fact("drift", mark, since=now, text=text),))
    if now < tried_at + QUIET:
        return Response(mark, may_set=False)
    return Response(msgspec.structs.replace(mark, tried_at=now), may_set=True)


def _fact(
    kind: Literal["drift", "drift_given_up"], mark: GateMark, *, since: datetime, text: str
) -> Fact:
    return Fact(kind=kind, since=since, device=mark.device, text=text)
