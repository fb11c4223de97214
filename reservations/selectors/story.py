"""What happened to a booking, and which bookings are somebody's own."""

from dataclasses import dataclass, field
from datetime import datetime

from django.db.models import Q

from reservations.core.lifecycle import Phase, phase_of
from reservations.models import AuditEntry, Booking, Membership, User
from reservations.selectors import bookings

# How many past bookings a page lists.
PAST_SHOWN = 50


@dataclass(frozen=True)
class Own:
    """Bookings of one person or shared with them: by phase, the most pressing first."""

    running: list[Booking] = field(default_factory=list)
    upcoming: list[Booking] = field(default_factory=list)
    past: list[Booking] = field(default_factory=list)


def own(user: User, *, now: datetime) -> Own:
    """Own bookings and those whose devices the person may use. The past is cut after a page."""
    teams = Membership.objects.filter(user=user).values("team")
    mine = Q(owner=user) | Q(people=user) | Q(team__in=teams)
    keys = Booking.objects.filter(mine).values("pk")
    every = bookings.whole().filter(pk__in=keys)
    ahead = every.filter(end__gt=now, state__in=("confirmed", "pending")).order_by("start", "pk")
    behind = every.filter(Q(end__lte=now) | Q(state__in=("cancelled", "rejected")))
    found = Own(past=list(behind.order_by("-end", "-pk")[:PAST_SHOWN]))
    for booking in ahead:
        phase = phase_of(state=booking.state, start=booking.start, end=booking.end, now=now)
        (found.running if phase is Phase.ACTIVE else found.upcoming).append(booking)
    return found


def entries(booking: Booking) -> list[AuditEntry]:
    """The audit trail of a booking, oldest first."""
    return list(
        AuditEntry.objects.filter(booking=booking)
        .select_related("device__host", "host", "actor")
        .order_by("at", "pk")
    )
