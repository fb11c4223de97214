"""What operators look at: every host with what it last said of itself, its devices and its trail."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from reservations.core.errors import NotFound
from reservations.models import AuditEntry, Device, Host

# How many of the latest entries of a host its page tells.
TRAIL_SHOWN: Final = 30
# What is daily business, and stands on the pages of bookings.
_DAILY: Final = ("opened", "closed", "early_signalled", "warned")


def hosts() -> list[Host]:
    return list(Host.objects.select_related("status").order_by("name"))


def host(name: str) -> Host:
    """Raises ``NotFound``."""
    found = Host.objects.select_related("status").filter(name=name).first()
    if found is None:
        raise NotFound("There is no such host.")
    return found


def devices(of: Sequence[Host]) -> dict[int, list[Device]]:
    """Those that are not retired, by the id of their host."""
    found: defaultdict[int, list[Device]] = defaultdict(list)
    rows = Device.objects.filter(host__in=of).exclude(state=Device.State.RETIRED)
    for device in rows.select_related("host").order_by("index", "uuid"):
        found[device.host_id].append(device)
    return found


def trail(of: Host) -> list[AuditEntry]:
    """The latest that happened on a host, newest first."""
    rows = AuditEntry.objects.filter(host=of).exclude(verb__in=_DAILY)
    return list(
        rows.select_related("device__host", "host", "actor").order_by("-at", "-pk")[:TRAIL_SHOWN]
    )
