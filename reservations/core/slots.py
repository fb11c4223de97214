"""Finds free slots: k devices at once, free for a duration, on one host or on any.

A device can begin a slot from the end of one busy period until one duration before the next begins.
A sweep over the edges of those spans visits every start that can be the earliest, and no other.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from reservations.core.period import Period, merged, next_on_grid

Busy = Mapping[str, Sequence[Period]]


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A device that would do, by its UUID."""

    device: str
    host: str


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """``count`` of the candidates, free together for ``duration``; starts lie on the grid."""

    candidates: tuple[Candidate, ...]
    count: int
    duration: timedelta
    same_host: bool = True
    grid: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Slot:
    period: Period
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class _Opening:
    """A gap of one device in which the slot can begin anywhere from ``first`` to ``last``."""

    first: datetime
    last: datetime
    slack: timedelta
    candidate: Candidate


def earliest(
    busy: Busy, request: SlotRequest, *, after: datetime, horizon: datetime, limit: int = 1
) -> list[Slot]:
    """The first slots that start at or after ``after`` and end by ``horizon``, one for each start.

    ``busy`` maps a device to its busy periods in any order; a missing device is free.
    """
    found: list[Slot] = []
    for start, openings in _starts(sorted(_openings(busy, request, after, horizon)), request):
        if chosen := _best_fit(openings, request):
            found.append(Slot(Period(start, start + request.duration), chosen))
            if len(found) == limit:
                break
    return found


def at(
    busy: Busy, request: SlotRequest, *, start: datetime, after: datetime, horizon: datetime
) -> Slot | None:
    """The best devices for exactly this start, on the grid or not; None if too few are free.

    How well a device fits is judged by its free time between ``after`` and ``horizon``.
    """
    period = Period(start, start + request.duration)
    openings = []
    for candidate in request.candidates:
        gap = _gap_around(busy.get(candidate.device, ()), period, Period(after, horizon))
        if gap is not None:
            openings.append(_Opening(start, start, gap.duration - period.duration, candidate))
    chosen = _best_fit(openings, request)
    return Slot(period, chosen) if chosen else None


def earliest_until(
    busy: Busy, request: SlotRequest, *, after: datetime, end: datetime
) -> Slot | None:
    """The longest slot that ends at ``end``, for requests that name an end and no start."""
    openings = []
    for candidate in request.candidates:
        blocking = [one.end for one in busy.get(candidate.device, ()) if one.start < end]
        first = next_on_grid(max([after, *blocking]), request.grid)
        if first < end:
            openings.append(_Opening(first, end, timedelta(0), candidate))
    choices = [
        sorted(group, key=lambda one: (one.first, one.candidate.device))[: request.count]
        for group in _groups(openings, request)
        if len(group) >= request.count
    ]
    if not choices:
        return None
    best = min(choices, key=lambda choice: choice[-1].first)
    devices = tuple(sorted(one.candidate.device for one in best))
    return Slot(Period(best[-1].first, end), devices)


def _starts(
    openings: Sequence[_Opening], request: SlotRequest
) -> Iterator[tuple[datetime, list[_Opening]]]:
    """Each start at which enough devices are open on one host (or at all), with those open then."""
    open_now: list[tuple[datetime, _Opening]] = []
    on_host: Counter[str] = Counter()
    for start, beginning in groupby(openings, key=lambda one: one.first):
        while open_now and open_now[0][0] < start:
            _, closed = heapq.heappop(open_now)
            on_host[closed.candidate.host] -= 1
        grown: set[str] = set()
        for opening in beginning:
            heapq.heappush(open_now, (opening.last, opening))
            on_host[opening.candidate.host] += 1
            grown.add(opening.candidate.host)
        # Only a host that has just won a device can be the earliest; the others were offered before.
        enough = (
            any(on_host[host] >= request.count for host in grown)
            if request.same_host
            else len(open_now) >= request.count
        )
        if enough:
            yield start, [opening for _, opening in open_now]


def _openings(
    busy: Busy, request: SlotRequest, after: datetime, horizon: datetime
) -> Iterator[_Opening]:
    for candidate in request.candidates:
        for gap in _gaps(busy.get(candidate.device, ()), after, horizon):
            first = next_on_grid(gap.start, request.grid)
            last = gap.end - request.duration
            if first <= last:
                yield _Opening(first, last, gap.duration - request.duration, candidate)


def _gaps(busy: Iterable[Period], after: datetime, horizon: datetime) -> Iterator[Period]:
    free_from = after
    for period in merged(busy):
        if period.start > free_from:
            yield Period(free_from, min(period.start, horizon))
        free_from = max(free_from, period.end)
        if free_from >= horizon:
            return
    if free_from < horizon:
        yield Period(free_from, horizon)


def _gap_around(busy: Iterable[Period], wanted: Period, seen: Period) -> Period | None:
    """The free time around the wanted period, as far as is seen; None if it is not all free."""
    start, end = min(seen.start, wanted.start), max(seen.end, wanted.end)
    for period in busy:
        if period.overlaps(wanted):
            return None
        if period.end <= wanted.start:
            start = max(start, period.end)
        else:
            end = min(end, period.start)
    return Period(start, end)


def _groups(openings: Sequence[_Opening], request: SlotRequest) -> list[list[_Opening]]:
    """Openings that may be taken together: those of one host each, or all."""
    if not request.same_host:
        return [list(openings)]
    hosts: dict[str, list[_Opening]] = {}
    for opening in openings:
        hosts.setdefault(opening.candidate.host, []).append(opening)
    return list(hosts.values())


def _best_fit(openings: Sequence[_Opening], request: SlotRequest) -> tuple[str, ...]:
    """The devices whose gaps are filled best; of hosts that fit alike, the one with fewest free.

    Small gaps are used up first, so that long free stretches and whole hosts stay for those who need them.
    """
    best: tuple[timedelta, int, tuple[str, ...]] | None = None
    for group in _groups(openings, request):
        if len(group) < request.count:
            continue
        chosen = heapq.nsmallest(
            request.count, group, key=lambda one: (one.slack, one.candidate.device)
        )
        total = sum((one.slack for one in chosen), timedelta())
        key = (total, len(group), tuple(one.candidate.device for one in chosen))
        best = key if best is None else min(best, key)
    return tuple(sorted(best[2])) if best else ()
