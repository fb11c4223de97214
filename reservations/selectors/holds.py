"""Which hosts are held now. A hold that is over is no hold, whether or not its row is still there."""

from datetime import datetime

from django.db.models import QuerySet

from reservations.core.wire import Hold
from reservations.models import Host, HostHold
from reservations.selectors.visible import instant


def in_force(*, now: datetime) -> QuerySet[HostHold]:
    return HostHold.objects.filter(until__gt=now).select_related("host", "by")


def of_host(host: Host, *, now: datetime) -> Hold | None:
    """As the host is told."""
    held = in_force(now=now).filter(host=host).first()
    return Hold(reason=held.reason, until=held.until) if held else None


def row(held: HostHold) -> dict[str, str]:
    """What everybody may know: nothing will be opened, closed or stopped there, and until when."""
    return {
        "reason": held.reason,
        "since": instant(held.since),
        "until": instant(held.until),
    }


def rows(*, now: datetime) -> dict[str, dict[str, str]]:
    """By the host's name."""
    return {held.host.name: row(held) for held in in_force(now=now).order_by("host__name")}
