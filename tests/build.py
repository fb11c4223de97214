"""Typed builders: the smallest row that makes sense, everything else by name."""

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from reservations.models import Account, Allocation, Booking, Device, Host, Rule, Team, User
from reservations.services.actors import Actor

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
GIB = 2**30
_serial = count(1)


def user(username: str | None = None, **fields: Any) -> User:
    return User.objects.create(username=username or f"person{next(_serial)}", **fields)


def operator(username: str | None = None, **fields: Any) -> User:
    return user(username, is_operator=True, **fields)


def team(*members: User, managers: tuple[User, ...] = (), name: str | None = None) -> Team:
    made = Team.objects.create(name=name or f"team{next(_serial)}")
    made.members.add(*members)
    made.members.add(*managers, through_defaults={"is_manager": True})
    return made


def host(name: str | None = None, **fields: Any) -> Host:
    return Host.objects.create(name=name or f"host{next(_serial)}", **fields)


def device(on: Host | None = None, **fields: Any) -> Device:
    number = next(_serial)
    defaults: dict[str, Any] = {
        "uuid": f"GPU-{number:08d}",
        "host": on or host(),
        "vendor": "simulated",
        "index": number,
        "model": "Test 80GB",
        "memory_bytes": 80 * GIB,
        "bookable": True,
        "managed_by": Device.ManagedBy.BERTH,
    }
    return Device.objects.create(**{**defaults, **fields})


def account(of: User, on: Host | None = None, **fields: Any) -> Account:
    return Account.objects.create(user=of, host=on, **{"unix_name": of.username, **fields})


def booking(
    *devices: Device,
    owner: User | None = None,
    start: datetime = NOON,
    hours: float = 1,
    end: datetime | None = None,
    **fields: Any,
) -> Booking:
    """A booking with its allocations, written straight to the tables: no rule is asked."""
    owner = owner or user()
    end = end or start + timedelta(hours=hours)
    state = fields.get("state", Booking.State.CONFIRMED)
    defaults: dict[str, Any] = {
        "planned_end": end,
        "created": start - timedelta(days=1),
        "created_by": owner,
    }
    made = Booking.objects.create(owner=owner, start=start, end=end, **{**defaults, **fields})
    Allocation.objects.bulk_create(
        Allocation(
            booking=made, device=one, start=start, end=end, holds=state == Booking.State.CONFIRMED
        )
        for one in devices or (device(),)
    )
    return made


def rule(kind: str, limit: float, *, name: str | None = None, **fields: Any) -> Rule:
    """A rule of the site; the three that a new database has are replaced by their names."""
    defaults = {"kind": kind, "limit": limit, **fields}
    name = name or f"rule{next(_serial)}"
    return Rule.objects.update_or_create(name=name, defaults=defaults)[0]


def person(username: str | None = None, **fields: Any) -> User:
    """Somebody who can book: with an account on every host."""
    made = user(username, **fields)
    account(made)
    return made


def actor(of: User, *, source: str = "web") -> Actor:
    return Actor.of(of, source=source)
