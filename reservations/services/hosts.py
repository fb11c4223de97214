"""Hosts: registering them, their tokens, how they are to behave, and which devices people may book."""

import json
import secrets
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction

from reservations import announce
from reservations.core.errors import Invalid, NotFound, NotPossibleNow
from reservations.models import Allocation, Device, Host, HostStatus
from reservations.services import audit, locks, openings, plans
from reservations.services.actors import Actor
from reservations.services.tokens import digest

TOKEN_PREFIX: Final = "berth_host_"  # noqa: S105 -- no secret
_RANDOM_BYTES = 32


def host_actor(host: Host) -> Actor:
    return Actor(None, f"host {host.name}", "host")


def add_host(
    name: str,
    *,
    actor: Actor,
    now: datetime,
    mode: str = Host.Mode.OBSERVE,
    settings: Mapping[str, Any] | None = None,
) -> tuple[Host, str]:
    """The new host and its token, which nobody can read again.

    Raises:
        Invalid: the name is taken or no host name, the mode or a setting does not exist.
    """
    _check_name(name)
    _check_mode(mode)
    token = _new_token()
    checked = plans.checked_settings(settings or {})
    with transaction.atomic():
        host = Host.objects.create(
            name=name, mode=mode, settings=checked, token_digest=digest(token)
        )
        HostStatus.objects.create(host=host)
        after = {"mode": mode, "settings": checked}
        audit.record("host_added", actor=actor, now=now, host=host, after=after)
    return host, token


def rotate_token(host: Host, *, actor: Actor, now: datetime) -> str:
    """A new token; the old one opens nothing from now on."""
    token = _new_token()
    with transaction.atomic():
        Host.objects.filter(pk=host.pk).update(token_digest=digest(token))
        audit.record("token_rotated", actor=actor, now=now, host=host)
    return token


def host_of_token(token: str) -> Host | None:
    if not token.startswith(TOKEN_PREFIX) or not token.isascii():
        return None
    return Host.objects.filter(token_digest=digest(token)).first()


def behaviour_key(host: Host) -> str:
    """Names the mode and the settings together: the same as long as nobody changes either."""
    text = json.dumps([host.mode, host.settings], sort_keys=True)
    return digest(text).hex()[:16]


def set_mode(
    host: Host,
    *,
    mode: str,
    settings: Mapping[str, Any],
    actor: Actor,
    now: datetime,
    seen: str | None = None,
) -> Host:
    """How the host is to behave from its next look on.

    ``seen`` is the behaviour key that the actor decided on; None: whatever it is now.

    Raises:
        Forbidden
        Invalid: the mode or a setting does not exist.
        NotPossibleNow: somebody else changed it since it was seen.
    """
    actor.check_operates()
    _check_mode(mode)
    checked = plans.checked_settings(settings)
    with transaction.atomic():
        current = Host.objects.select_for_update(no_key=True).get(pk=host.pk)
        if seen is not None and seen != behaviour_key(current):
            raise NotPossibleNow(
                f"Somebody changed {host.name} in the meantime; it is shown as it is now. "
                "Nothing of yours was saved."
            )
        before = {"mode": current.mode, "settings": current.settings}
        after = {"mode": mode, "settings": checked}
        current.mode, current.settings = mode, checked
        current.save(update_fields=["mode", "settings"])
        audit.record("host_changed", actor=actor, now=now, host=host, before=before, after=after)
        if before["mode"] == Host.Mode.ENFORCE != mode:
            openings.note_those_of(current, now=now)
        announce.nudge([host.name])
    return current


def set_labels(host: Host, labels: Mapping[str, Any], *, actor: Actor, now: datetime) -> None:
    """What people may choose the host by."""
    with transaction.atomic():
        current = Host.objects.select_for_update(no_key=True).get(pk=host.pk)
        before, after = {"labels": current.labels}, {"labels": dict(labels)}
        if before == after:
            return
        current.labels = after["labels"]
        current.save(update_fields=["labels"])
        audit.record("host_changed", actor=actor, now=now, host=host, before=before, after=after)


def enable_devices(
    host: Host, uuids: Iterable[str] | None, *, actor: Actor, now: datetime
) -> list[Device]:
    """Let Berth manage these devices (None: all that the host has) and people book them.

    A device with parts stays unbookable: its parts are booked instead.

    Raises:
        NotFound: a UUID that the host does not have.
    """
    with transaction.atomic():
        rows = {row.uuid: row for row in locks.devices(host.devices.all())}
        wanted = list(rows if uuids is None else uuids)
        if missing := sorted(set(wanted) - rows.keys()):
            raise NotFound(f"{host.name} has no device {', '.join(missing)}.")
        chosen = [rows[uuid] for uuid in wanted if rows[uuid].state != Device.State.RETIRED]
        divided = {row.parent_id for row in rows.values()}
        for row in chosen:
            _write_use(
                row, Device.ManagedBy.BERTH, bookable=row.pk not in divided, actor=actor, now=now
            )
        announce.nudge([host.name])
    return chosen


def set_use(
    device: Device, *, managed_by: str, bookable: bool, actor: Actor, now: datetime
) -> Device:
    """Change who manages a device and whether people may book it.

    Raises:
        Invalid: bookable although its parts are booked instead, or although Berth does not manage it.
        NotPossibleNow: somebody holds the device, its parent or one of its parts.
    """
    if bookable and managed_by != Device.ManagedBy.BERTH:
        raise Invalid({"bookable": ["Only a device that Berth manages can be booked."]})
    with transaction.atomic():
        rows = {row.pk: row for row in locks.devices(Device.objects.filter(host=device.host_id))}
        current = rows[device.pk]
        top = current.parent_id or current.pk
        tree = [row.pk for row in rows.values() if top in {row.pk, row.parent_id}]
        if Allocation.objects.filter(device__in=tree, holds=True, end__gt=now).exists():
            raise NotPossibleNow(
                "There are bookings on this device or on a part of it. Move or cancel them first."
            )
        if bookable and any(row.parent_id == current.pk for row in rows.values()):
            raise Invalid({"bookable": ["Its parts are booked instead."]})
        _write_use(current, managed_by, bookable=bookable, actor=actor, now=now)
        announce.nudge([current.host.name])
    return current


def _write_use(
    device: Device, managed_by: str, *, bookable: bool, actor: Actor, now: datetime
) -> None:
    before = {"managed_by": device.managed_by, "bookable": device.bookable}
    after = {"managed_by": str(managed_by), "bookable": bookable}
    if before == after:
        return
    device.managed_by, device.bookable = managed_by, bookable
    device.save(update_fields=["managed_by", "bookable"])
    about: dict[str, Any] = {"device": device, "before": before, "after": after}
    audit.record("device_changed", actor=actor, now=now, host=device.host, **about)


def _check_mode(mode: str) -> None:
    if mode not in Host.Mode.values:
        raise Invalid({"mode": [f"The mode is one of {', '.join(Host.Mode.values)}."]})


def _check_name(name: str) -> None:
    if Host.objects.filter(name=name).exists():
        raise Invalid({"name": [f"There is already a host {name}."]})
    try:
        Host._meta.get_field("name").clean(name, None)
    except ValidationError as error:
        raise Invalid({"name": error.messages}) from error


def _new_token() -> str:
    return TOKEN_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
