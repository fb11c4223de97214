"""Rules and accounts, as operators write them by form: saved together with an entry of the trail."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction

from reservations import announce
from reservations.models import Account, Host, Rule
from reservations.selectors.visible import instant
from reservations.services import audit
from reservations.services.actors import Actor


def save(row: Rule | Account, *, actor: Actor, now: datetime) -> None:
    """Write the row; hosts that know people by it ask for their plan."""
    with transaction.atomic():
        old = type(row)._default_manager.select_for_update().filter(pk=row.pk).first()
        before, hosts = (_told(old), _hosts(old)) if old else (None, set[str]())
        row.save()
        after = _told(row)
        if before == after:
            return
        _record(
            row, "changed" if old else "added", actor=actor, now=now, before=before, after=after
        )
        announce.nudge(hosts | _hosts(row))


def delete(row: Rule | Account, *, actor: Actor, now: datetime) -> None:
    with transaction.atomic():
        before, hosts = _told(row), _hosts(row)
        _record(row, "removed", actor=actor, now=now, before=before)
        row.delete()
        announce.nudge(hosts)


def _record(row: Rule | Account, done: str, *, actor: Actor, now: datetime, **about: Any) -> None:
    host = row.host if isinstance(row, Account) else None
    verb = f"{row._meta.model_name}_{done}"
    audit.record(verb, actor=actor, now=now, host=host, **about)


def _told(row: Rule | Account) -> dict[str, Any]:
    if isinstance(row, Account):
        return {
            "user": row.user.username,
            "host": row.host.name if row.host else None,
            "unix_name": row.unix_name,
            "expected_uid": row.expected_uid,
        }
    return {
        "name": row.name,
        "kind": row.kind,
        "limit": row.limit,
        "match": row.match,
        "scope": row.scope,
        "action": row.action,
        "valid_from": instant(row.valid_from) if row.valid_from else None,
        "valid_to": instant(row.valid_to) if row.valid_to else None,
    }


def _hosts(row: Rule | Account) -> set[str]:
    """The hosts whose plans name people by this row: one, or all."""
    if not isinstance(row, Account):
        return set()
    names: Iterable[str] = Host.objects.values_list("name", flat=True)
    return {row.host.name} if row.host else set(names)
