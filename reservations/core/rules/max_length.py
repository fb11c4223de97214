"""How long one booking may be."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from reservations.core.errors import Objection
from reservations.core.rules.base import (
    BookingRequest,
    Standing,
    Terms,
    Usage,
    counted,
)

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class MaxLength:
    """``limit`` in hours of absolute time: a day of 25 hours counts as 25."""

    kind: ClassVar[str] = "max_length"
    unit: ClassVar[str] = "hours"
    counts_held: ClassVar[bool] = False

    terms: Terms

    def objection(
        self, request: BookingRequest, standing: Standing, now: datetime
    ) -> Objection | None:
        usage = self.usage(request, standing, now)
        if usage is None or usage.asked <= usage.limit:
            return None
        return Objection(
            self.terms.name,
            f"This booking lasts {_length(usage.asked)}; the limit is {_length(usage.limit)}.",
            {"limit_hours": usage.limit, "asked_hours": usage.asked},
        )

    def usage(self, request: BookingRequest, standing: Standing, now: datetime) -> Usage | None:
        if not self.terms.covered(request):
            return None
        asked = request.period.duration / HOUR
        return Usage(self.terms.name, self.kind, self.unit, self.terms.limit, 0, asked)


def _length(hours: float) -> str:
    return counted(hours / 24, "days") if hours >= 48 else counted(hours, "hours")
