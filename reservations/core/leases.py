"""Until when a gate that can close by itself lets people in. It does so also when the agent is dead.

Where gates are to stay as they are (past `complete_until`, while a host is held) no lease may run out
under the people who are let in, and so they get one without an end: `endless`.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime

from reservations.core.enforcement import HostGrant

Leases = Mapping[tuple[str, int], datetime]
"""By device and uid. Whoever is let in and has none is let in without an end."""

NEVER = datetime.max.replace(tzinfo=UTC)


def leases(grants: Iterable[HostGrant], *, always_open: Collection[int], now: datetime) -> Leases:
    """For everybody with a grant in force; grants that touch make one lease."""
    found: dict[tuple[str, int], datetime] = {}
    for grant in sorted(grants, key=lambda grant: grant.start):
        who = (grant.device, grant.uid)
        goes_on = who in found and grant.start <= found[who]
        if grant.uid not in always_open and grant.end > now and (goes_on or grant.start <= now):
            found[who] = max(found.get(who, grant.end), grant.end)
    return found


def endless(grants: Iterable[HostGrant]) -> Leases:
    return {(grant.device, grant.uid): NEVER for grant in grants}
