"""How far ahead a booking may end."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from reservations.core.errors import Objection
from reservations.core.rules.base import BookingRequest, Standing, Terms, Usage, counted

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Horizon:
    """``limit`` in days from now. The end counts, so that a long booking cannot reach beyond it."""

    kind: ClassVar[str] = "horizon"
    unit: ClassVar[str] = "days"
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
            f"This booking ends {counted(usage.asked, 'days')} from now; bookings must end within "
            f"{counted(usage.limit, 'days')}.",
            {"limit_days": usage.limit, "asked_days": usage.asked},
        )

    def usage(self, request: BookingRequest, standing: Standing, now: datetime) -> Usage | None:
        if not self.terms.covered(request):
            return None
        asked = (request.period.end - now) / DAY
        return Usage(self.terms.name, self.kind, self.unit, self.terms.limit, 0, asked)
