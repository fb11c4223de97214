"""How notices name devices and times."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.conf import settings

from reservations.models import Device, User


def local_time(instant: datetime, user: User, *, now: datetime) -> str:
    """The instant on the person's own clock, with the day if that is not today."""
    zone = ZoneInfo(user.time_zone or settings.SITE_TIME_ZONE)
    local = instant.astimezone(zone)
    today = local.date() == now.astimezone(zone).date()
    return f"{local:%H:%M}" if today else f"{local:%a} {local.day} {local:%b, %H:%M}"


def names(devices: Iterable[Device]) -> str:
    """Such as ``A100 80GB · 0 and A100 80GB · 1 on gpu1``."""
    by_host: dict[str, list[str]] = {}
    for device in devices:
        by_host.setdefault(device.host.name, []).append(device.name)
    return "; ".join(f"{_listed(found)} on {host}" for host, found in sorted(by_host.items()))


def _listed(words: list[str]) -> str:
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} and {words[-1]}"


def span(length: timedelta) -> str:
    """Such as ``15 min`` or ``2 h``; rounded up, for somebody who has to hurry."""
    minutes = -(-int(length.total_seconds()) // 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{-(-minutes // 60)} h"
