"""When people are told that their time on a device draws to its end, in good time to save or extend.

The browser and the terminals of a host keep to the same steps. Each is told once for each end, so an
extended booking is warned of its new end again. Somebody who goes on with the same device in another
booking is not warned in between.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reservations.core.enforcement import HostGrant

STEPS = (timedelta(minutes=15), timedelta(minutes=5), timedelta(minutes=1))
# In addition, for those of more than a day.
STEPS_OF_LONG_ONES = (timedelta(hours=24), timedelta(hours=2))
LONG = timedelta(hours=24)
# A booking that is kept while the device is free is extended by this, a minute before its end ...
KEPT_BY = timedelta(minutes=15)
# ... so its end is worth a word only once that has not happened.
NOT_KEPT = timedelta(seconds=45)


def step_due(start: datetime, end: datetime, *, now: datetime) -> timedelta | None:
    """The latest step that has been reached; earlier ones that were missed are not made up for.

    A step that is longer than the booking itself says nothing.
    """
    steps = STEPS + (STEPS_OF_LONG_ONES if end - start > LONG else ())
    reached = [step for step in steps if end - now <= step < end - start]
    return min(reached, default=None)


@dataclass(frozen=True, slots=True)
class Ending:
    """What somebody is to be told once: their devices of a booking end, and which step it is."""

    booking: int | None
    uid: int
    end: datetime
    step: timedelta
    devices: tuple[str, ...]

    @property
    def key(self) -> str:
        """The same whenever it is asked for, also by an agent that has just started."""
        return (
            f"{self.booking}:{self.uid}:{self.end.timestamp():.0f}:{self.step.total_seconds():.0f}"
        )


@dataclass(frozen=True, slots=True)
class _Run:
    """One person's time on one device without a break; ``last`` is the grant that ends it."""

    start: datetime
    last: HostGrant


def endings(grants: Sequence[HostGrant], *, now: datetime) -> list[Ending]:
    """Every step that has been reached now, whether or not it was told already."""
    devices: defaultdict[tuple[int | None, int, datetime, timedelta], set[str]] = defaultdict(set)
    starts = _starts(grants)
    for run in _running(grants, now=now):
        last = run.last
        step = step_due(run.start, last.end, now=now)
        if step is not None and not _will_be_kept(last, starts[last.device], now=now):
            devices[last.booking, last.uid, last.end, step].add(last.device)
    return [
        Ending(booking=booking, uid=uid, end=end, step=step, devices=tuple(sorted(names)))
        for (booking, uid, end, step), names in devices.items()
    ]


def _running(grants: Iterable[HostGrant], *, now: datetime) -> list[_Run]:
    """Grants of one person on one device that touch count as one."""
    runs: defaultdict[tuple[str, int], list[_Run]] = defaultdict(list)
    for grant in sorted(grants, key=lambda grant: (grant.start, grant.end)):
        own = runs[grant.device, grant.uid]
        if not own or own[-1].last.end < grant.start:
            own.append(_Run(grant.start, grant))
        elif own[-1].last.end < grant.end:
            own[-1] = _Run(own[-1].start, grant)
    return [run for own in runs.values() for run in own if run.start <= now < run.last.end]


def _starts(grants: Iterable[HostGrant]) -> dict[str, list[datetime]]:
    found: defaultdict[str, list[datetime]] = defaultdict(list)
    for grant in grants:
        found[grant.device].append(grant.start)
    return found


def _will_be_kept(grant: HostGrant, starts: Iterable[datetime], *, now: datetime) -> bool:
    """Whether the server is about to move this end, as far as one can tell from here."""
    if not grant.keep_if_free or grant.end - now <= NOT_KEPT:
        return False
    return not any(grant.end <= start < grant.end + KEPT_BY for start in starts)
