"""SIGUSR1 ten minutes before the end, for bookings that asked for it: time to save what was computed.

A signal that a program does not handle ends it. So it goes to those alone who were on the device when it
was due, once for each end, and where that end is one: not between two grants of one person.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reservations.core.enforcement import EarlySignal, Fact, Holder, HostGrant
from reservations.core.rights import TICK_TOLERANCE
from reservations.core.stopping import topmost
from reservations.core.wire import MAX_PIDS_PER_REPORT

BEFORE_END = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Case:
    """A grant whose signal is due, and its person's holders on its device."""

    grant: HostGrant
    holders: tuple[Holder, ...]


def due_at(grant: HostGrant) -> datetime:
    return grant.end - BEFORE_END


def due(grants: Sequence[HostGrant], *, now: datetime) -> list[HostGrant]:
    """The grants that asked for it and end within ten minutes.

    Grants of one person that touch count as one, which ends with the last of them. One that is shorter
    than those ten minutes as a whole has no such instant.
    """
    return [
        grant
        for grant in grants
        if grant.early_signal
        and due_at(grant) <= now < grant.end
        and not _goes_on(grant, grants)
        and _began(grant, grants) <= due_at(grant)
    ]


def fact(grant: HostGrant, pids: tuple[int, ...] = ()) -> Fact:
    """Told once for each booking, person, device and end."""
    return Fact(
        kind="early_signalled",
        since=grant.end,
        device=grant.device,
        booking=grant.booking,
        uid=grant.uid,
        pids=pids[:MAX_PIDS_PER_REPORT],
    )


def was_there(holder: Holder, grant: HostGrant) -> bool:
    """Whether it already ran when the signal was due; later ones know the end."""
    return holder.started <= due_at(grant) + TICK_TOLERANCE


def signals(cases: Iterable[Case]) -> list[EarlySignal]:
    """For each device those of its holders that nobody else of the same booking is above.

    A process on several devices of a booking hears it once.
    """
    bookings: defaultdict[tuple[int | None, int, datetime], list[Case]] = defaultdict(list)
    for case in cases:
        bookings[case.grant.booking, case.grant.uid, case.grant.end].append(case)
    made: list[EarlySignal] = []
    for together in bookings.values():
        unheard = set(topmost([holder for case in together for holder in case.holders]))
        for case in together:
            pids = tuple(sorted(unheard & {holder.pid for holder in case.holders}))
            unheard -= set(pids)
            if pids:
                made.append(_signal(case.grant, pids))
    return made


def _signal(grant: HostGrant, pids: tuple[int, ...]) -> EarlySignal:
    return EarlySignal(device=grant.device, uid=grant.uid, pids=pids, facts=(fact(grant, pids),))


def _goes_on(grant: HostGrant, grants: Iterable[HostGrant]) -> bool:
    return any(one.start <= grant.end < one.end for one in _same(grant, grants))


def _began(grant: HostGrant, grants: Sequence[HostGrant]) -> datetime:
    """Since when the person has had the device without a break."""
    start = grant.start
    for one in sorted(_same(grant, grants), key=lambda one: one.end, reverse=True):
        if one.start < start <= one.end:
            start = one.start
    return start


def _same(grant: HostGrant, grants: Iterable[HostGrant]) -> list[HostGrant]:
    return [one for one in grants if (one.device, one.uid) == (grant.device, grant.uid)]
