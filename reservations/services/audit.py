"""Writing the audit trail. Always inside the transaction of the change it tells of."""

from datetime import datetime
from typing import Any

from reservations import prepared
from reservations.models import AuditEntry
from reservations.services.actors import Actor


def record(verb: str, *, actor: Actor, now: datetime, why: str = "", **about: Any) -> AuditEntry:
    """One more fact. ``about``: booking, host, device, before, after."""
    made = AuditEntry(**entry(verb, actor=actor, now=now, why=why, **about))
    prepared.insert([made])
    return made


def record_once(
    key: str, verb: str, *, actor: Actor, now: datetime, why: str = "", **about: Any
) -> bool:
    """Write the fact unless somebody did; says whether it was us. The database decides."""
    values = entry(verb, actor=actor, now=now, why=why, **about)
    _, created = AuditEntry.objects.get_or_create(once_key=key, defaults=values)
    return created


def entry(verb: str, *, actor: Actor, now: datetime, why: str = "", **about: Any) -> dict[str, Any]:
    """The columns of an entry."""
    return {
        "at": now,
        "actor": actor.user,
        "actor_label": actor.label,
        "source_address": actor.address,
        "verb": verb,
        "why": why[:500],
        **about,
    }
