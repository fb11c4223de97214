"""Which grants a host is told of: one per person and device, from plain rows.

What is left out is always the latest, and the plan says from when on it is incomplete.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from reservations.core.wire import MAX_GRANTS, Grant

# Ended grants stay this long, so that a host can tell an overrun from an intruder.
REMEMBERED = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Held:
    """A device held for a booking. ``people`` are the ids of everybody who may use it."""

    booking: int
    device: str
    start: datetime
    end: datetime
    people: frozenset[int]
    kind: str = "normal"
    early_signal: bool = False
    keep_if_free: bool = False


@dataclass(frozen=True, slots=True)
class UnixAccount:
    """Who somebody is on the host. ``active`` is False once that person may no longer use anything."""

    unix_name: str
    expected_uid: int | None = None
    active: bool = True


@dataclass(frozen=True, slots=True)
class Selection:
    """Grants, earliest first; ``complete_until`` is the start of the first one left out, if any."""

    grants: tuple[Grant, ...]
    complete_until: datetime | None


def select_grants(
    held: Iterable[Held],
    accounts: Mapping[int, UnixAccount],
    *,
    now: datetime,
    limit: int = MAX_GRANTS,
) -> Selection:
    """The grants that matter from ``now`` on, and those that ended within the last 24 h.

    Maintenance makes none, and neither does a person without an account on the host.
    """
    grants = sorted(
        (
            grant
            for one in held
            if one.end > now - REMEMBERED and one.kind != "maintenance"
            for grant in _grants_of(one, accounts, now=now)
        ),
        key=lambda grant: (grant.start, grant.booking, grant.device, grant.unix_name),
    )
    left_out = grants[limit:]
    return Selection(
        grants=tuple(grants[:limit]), complete_until=left_out[0].start if left_out else None
    )


def _grants_of(one: Held, accounts: Mapping[int, UnixAccount], *, now: datetime) -> Iterator[Grant]:
    for person in one.people:
        account = accounts.get(person)
        # The ended grant of somebody who has left since stays: their processes are an overrun.
        if account is None or not (account.active or one.end <= now):
            continue
        yield Grant(
            booking=one.booking,
            device=one.device,
            unix_name=account.unix_name,
            expected_uid=account.expected_uid,
            start=one.start,
            end=one.end,
            early_signal=one.early_signal,
            keep_if_free=one.keep_if_free,
            kind="service" if one.kind == "service" else "normal",
        )
