"""Signs of life of the parts that nobody talks to: the control worker and beat."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from reservations.models import Pulse

BEAT = "beat"
CONTROL = "control"
FRESH = timedelta(seconds=30)


def beat(name: str, *, now: datetime) -> None:
    Pulse.objects.update_or_create(name=name, defaults={"at": now})


def stale(names: Iterable[str], *, now: datetime) -> dict[str, datetime | None]:
    """Those that have not shown a sign of life for 30 s, with their last one."""
    last = dict(Pulse.objects.values_list("name", "at"))
    return {name: last.get(name) for name in names if not _is_fresh(last.get(name), now)}


def _is_fresh(at: datetime | None, now: datetime) -> bool:
    return at is not None and now - at <= FRESH
