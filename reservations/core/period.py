"""A span of time, half-open and in UTC. Two periods that only touch do not overlap."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


class InvalidPeriod(ValueError):
    """The two instants do not make a period: one has no zone, or the end is not after the start."""


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """All instants from ``start`` (in) to ``end`` (out)."""

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.start.tzinfo is None or self.end.tzinfo is None:
            raise InvalidPeriod("both ends need a time zone")
        # Convert once: arithmetic between two local times skips the clock change.
        # What comes from the database is UTC already, by the tens of thousands.
        if self.start.tzinfo is not UTC:
            object.__setattr__(self, "start", self.start.astimezone(UTC))
        if self.end.tzinfo is not UTC:
            object.__setattr__(self, "end", self.end.astimezone(UTC))
        if self.start >= self.end:
            raise InvalidPeriod("the start must be before the end")

    @property
    def duration(self) -> timedelta:
        return self.end - self.start

    def overlaps(self, other: "Period") -> bool:
        return self.start < other.end and other.start < self.end

    def clipped_to(self, other: "Period") -> "Period | None":
        """The part that both share, or None."""
        if not self.overlaps(other):
            return None
        return Period(max(self.start, other.start), min(self.end, other.end))


def merged(periods: Iterable[Period]) -> list[Period]:
    """The same instants as disjoint periods in order; touching ones become one."""
    result: list[Period] = []
    for period in sorted(periods):
        if result and period.start <= result[-1].end:
            result[-1] = Period(result[-1].start, max(result[-1].end, period.end))
        else:
            result.append(period)
    return result


def next_on_grid(instant: datetime, grid: timedelta) -> datetime:
    """The first instant on the grid (counted from the Unix epoch) that is not before ``instant``."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    steps = -((epoch - instant) // grid)
    return epoch + steps * grid


def previous_on_grid(instant: datetime, grid: timedelta) -> datetime:
    """The last instant on the grid that is not after ``instant``."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + ((instant - epoch) // grid) * grid
