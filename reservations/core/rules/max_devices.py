"""How many devices a person, a team or the site may hold at once."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from reservations.core.errors import Objection
from reservations.core.period import Period
from reservations.core.rules.base import (
    BookingRequest,
    Standing,
    Terms,
    Unit,
    Usage,
    counted,
    plain,
)


@dataclass(frozen=True)
class MaxDevices:
    """``limit`` counts devices at the busiest instant of the period asked for, these included."""

    kind: ClassVar[str] = "max_devices"
    unit: ClassVar[str] = "devices"
    counts_held: ClassVar[bool] = True

    terms: Terms

    def objection(
        self, request: BookingRequest, standing: Standing, now: datetime
    ) -> Objection | None:
        usage = self.usage(request, standing, now)
        if usage is None or usage.used + usage.asked <= usage.limit:
            return None
        return Objection(
            self.terms.name,
            f"{self._whose(request)} would hold {counted(usage.used + usage.asked, 'devices')} at "
            f"once ({plain(usage.used)} booked already); the limit is {plain(usage.limit)}.",
            {"limit": usage.limit, "held": usage.used, "asked": usage.asked},
        )

    def usage(self, request: BookingRequest, standing: Standing, now: datetime) -> Usage | None:
        asked = len(self.terms.covered(request))
        if not asked or (self.terms.scope == "team" and request.team is None):
            return None
        held = [
            unit
            for unit in standing.held
            if self.terms.covers(unit) and self._counts(unit, request)
        ]
        used = busiest(held, request.period)
        return Usage(self.terms.name, self.kind, self.unit, self.terms.limit, used, asked)

    def _counts(self, unit: Unit, request: BookingRequest) -> bool:
        if self.terms.scope == "user":
            return unit.owner == request.owner
        return self.terms.scope == "site" or unit.team == request.team

    def _whose(self, request: BookingRequest) -> str:
        if self.terms.scope == "team":
            return f"Team {request.team}"
        return "All people together" if self.terms.scope == "site" else "One person"


def busiest(units: Iterable[Unit], period: Period) -> int:
    """The most units at one instant of the period. Ends count before starts: touching is no overlap."""
    edges: list[tuple[datetime, int]] = []
    for unit in units:
        if part := unit.period.clipped_to(period):
            edges += [(part.start, 1), (part.end, -1)]
    most = now = 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most
