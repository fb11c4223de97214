"""Which bookings a list shows. A filter never tells more than the rows themselves would."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db.models import Exists, OuterRef, Q, QuerySet

from reservations.models import Allocation, Booking
from reservations.selectors import bookings
from reservations.selectors.visible import Viewer

# The same facts as core.lifecycle.phase_of, as conditions of a query.
_PHASES: Final[Mapping[str, Callable[[datetime], Q]]] = {
    "pending": lambda now: Q(state="pending"),
    "cancelled": lambda now: Q(state="cancelled"),
    "rejected": lambda now: Q(state="rejected"),
    "upcoming": lambda now: Q(state="confirmed", start__gt=now),
    "active": lambda now: Q(state="confirmed", start__lte=now, end__gt=now),
    "ended": lambda now: Q(state="confirmed", end__lte=now),
}


def chosen(wanted: Mapping[str, Any], *, viewer: Viewer, now: datetime) -> QuerySet[Booking]:
    """Bookings that fit all of ``wanted``: mine, owner, team, host, device, state, phase, from, to.

    ``owner`` and ``team`` are names, ``device`` a UUID. Where the site hides names, filtering by them
    finds only what the viewer may read whole.
    """
    found = bookings.whole()
    if wanted.get("mine"):
        found = found.filter(Q(owner=viewer.user_id) | _shared_with(viewer))
    if "phase" in wanted:
        found = found.filter(_PHASES[wanted["phase"]](now))
    for name, lookup in (
        ("owner", "owner__username"),
        ("team", "team__name"),
        ("state", "state"),
        ("from", "end__gt"),
        ("to", "start__lt"),
    ):
        if name in wanted:
            found = found.filter(**{lookup: wanted[name]})
    if ("owner" in wanted or "team" in wanted) and not settings.SHOW_OWNERS:
        found = found.filter(readable(viewer))
    for name, lookup in (("host", "device__host__name"), ("device", "device__uuid")):
        if name in wanted:
            found = found.filter(_holds(**{lookup: wanted[name]}))
    return found


def readable(viewer: Viewer) -> Q:
    """The bookings that the viewer reads whole: `Viewer.role_in` as a condition of a query."""
    if viewer.is_operator:
        return Q()
    return Q(owner=viewer.user_id) | Q(team__in=viewer.teams) | _shared_with(viewer)


def of_person(user_id: int, *, since: datetime) -> QuerySet[Booking]:
    """What stands in a person's own calendar: theirs and those shared with them, from ``since`` on."""
    person = Viewer(user_id, is_operator=False)
    standing = bookings.whole().filter(state__in=["confirmed", "pending"], end__gt=since)
    return standing.filter(Q(owner=user_id) | _shared_with(person)).order_by("start", "pk")


def _shared_with(viewer: Viewer) -> Q:
    shared = Booking.people.through.objects.filter(user=viewer.user_id)
    return Q(pk__in=shared.values("booking"))


def _holds(**device: Any) -> Exists:
    # A replaced card's part ended earlier than the booking and is not its device any more.
    return Exists(Allocation.objects.filter(booking=OuterRef("pk"), end=OuterRef("end"), **device))
