"""Bookings with all that a row of them shows, in a fixed number of statements."""

from collections.abc import Iterable, Sequence

from django.db.models import Prefetch, QuerySet

from reservations.core.errors import NotFound
from reservations.models import Allocation, Booking, User


def whole() -> QuerySet[Booking]:
    """Bookings with owner, team, people and devices: four statements, however many rows."""
    allocations = Allocation.objects.select_related("device__host").order_by(
        "device__host__name", "device__index", "device__uuid"
    )
    return Booking.objects.select_related("owner", "team").prefetch_related(
        Prefetch("allocations", allocations), Prefetch("people", User.objects.order_by("username"))
    )


def one(booking_id: int) -> Booking:
    """Raises ``NotFound``."""
    found = whole().filter(pk=booking_id).first()
    if found is None:
        raise NotFound("There is no such booking.")
    return found


def remember(
    booking: Booking, *, allocations: Sequence[Allocation], people: Iterable[User]
) -> None:
    """Let a booking just written answer for its devices and people without asking the database again."""
    ordered = sorted(
        allocations,
        key=lambda one: (one.device.host.name, one.device.index, one.device.uuid),
    )
    known: dict[str, QuerySet[Allocation] | QuerySet[User]] = {
        "allocations": _answered(Allocation.objects.all(), ordered),
        "people": _answered(User.objects.all(), sorted(people, key=lambda one: one.username)),
    }
    booking._prefetched_objects_cache = known  # type: ignore[attr-defined]


def _answered(query: QuerySet, rows: list) -> QuerySet:  # type: ignore[type-arg]
    """A queryset that has its result already; how Django keeps prefetched rows itself."""
    query._result_cache = rows
    return query
