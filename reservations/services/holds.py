"""Holding hosts: their agents change no gate and stop nobody until somebody resumes, or time is up.

Every hold has an end: one that was forgotten must not switch enforcement off for good.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from reservations import announce
from reservations.core.errors import Invalid, NotFound
from reservations.models import Host, HostHold
from reservations.selectors import holds
from reservations.services import audit
from reservations.services.actors import Actor

LONGEST: Final = timedelta(days=7)
MAX_REASON: Final = 200


def hold(
    names: Sequence[str] | None, *, reason: str, until: datetime, actor: Actor, now: datetime
) -> list[str]:
    """Hold these hosts (None: all there are), or give their holds this reason and end; their names.

    Raises:
        Forbidden, NotFound
        Invalid: no reason, or an end that is past or more than a week away.
    """
    actor.check_operates()
    reason = " ".join(reason.split())
    _check(reason, until, now)
    with transaction.atomic():
        hosts = _locked(names)
        for host in hosts:
            before = holds.in_force(now=now).filter(host=host).first()
            since = before.since if before else now
            values = {"reason": reason, "since": since, "until": until, "by": actor.user}
            held, _ = HostHold.objects.update_or_create(host=host, defaults=values)
            audit.record(
                "host_held",
                actor=actor,
                now=now,
                why=reason,
                host=host,
                before=holds.row(before) if before else None,
                after=holds.row(held),
            )
        _tell(hosts)
    return [host.name for host in hosts]


def resume(names: Sequence[str] | None, *, actor: Actor, now: datetime) -> list[str]:
    """Let these hosts (None: all that are held) act again; the names of those that were held.

    Raises:
        Forbidden, NotFound
    """
    actor.check_operates()
    with transaction.atomic():
        locked = _locked(names)
        held = {one.host_id: one for one in holds.in_force(now=now)}
        hosts = [host for host in locked if host.pk in held]
        for host in hosts:
            before = holds.row(held[host.pk])
            audit.record("host_resumed", actor=actor, now=now, host=host, before=before)
        HostHold.objects.filter(host__in=hosts).delete()
        _tell(hosts)
    return [host.name for host in hosts]


def _check(reason: str, until: datetime, now: datetime) -> None:
    problems: dict[str, list[str]] = {}
    if not reason:
        problems["reason"] = ["Say why: people whose devices stay closed will read it."]
    elif len(reason) > MAX_REASON:
        problems["reason"] = [f"At most {MAX_REASON} characters."]
    if not now < until <= now + LONGEST:
        problems["until"] = [f"A hold ends within {LONGEST.days} days from now."]
    if problems:
        raise Invalid(problems)


def _locked(names: Sequence[str] | None) -> list[Host]:
    """The hosts in the order of their keys; holding and resuming at once take turns."""
    found = Host.objects.select_for_update(no_key=True).order_by("pk")
    if names is None:
        return list(found)
    hosts = list(found.filter(name__in=names))
    unknown = sorted(set(names) - {host.name for host in hosts})
    if unknown:
        raise NotFound(f"There is no host {', '.join(unknown)}.")
    return hosts


def _tell(hosts: Sequence[Host]) -> None:
    announce.nudge(host.name for host in hosts)
    announce.hosts_changed()
