"""What each host is told: its grants and how to treat them, as of one instant of the database."""

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings as site

from reservations.core.errors import Invalid
from reservations.core.plan import REMEMBERED, select_grants
from reservations.core.wire import HostSettings, Plan, plan_etag
from reservations.models import Device, Host, Site
from reservations.selectors import accounts, holds, machines

# Set from elsewhere: the mode is a column, the managed devices are those that Berth manages, who is
# shown is the site's choice, a hold is a row of its own.
_NOT_AN_OVERRIDE = frozenset({"mode", "managed", "show_owners", "hold"})


# A change looks at the clock a moment before it is committed. Until this has passed, it may be missing.
_COMMIT_TAKES = timedelta(seconds=1)
# A plan may be a minute old when it is acted upon: what begins until then may have begun.
_SOON = timedelta(minutes=1)
_MAX_CANCELLED = 1_000


def plan_for(host: Host, *, now: datetime) -> Plan:
    """The host's plan, which knows every change that was decided on before ``as_of``."""
    # Before anything else is read: what is committed meanwhile may or may not be in.
    as_of = machines.database_now() - _COMMIT_TAKES
    host = Host.objects.get(pk=host.pk)
    held = machines.held_on(host, since=now - REMEMBERED)
    people = {person for one in held for person in one.people}
    chosen = select_grants(held, accounts.unix_accounts(host, people, now=now), now=now)
    settings = _settings_of(host, now=now)
    epoch = plan_epoch()
    return Plan(
        host=host.name,
        epoch=epoch,
        etag=plan_etag(epoch, chosen.grants, settings, complete_until=chosen.complete_until),
        as_of=as_of,
        server_time=now,
        grants=chosen.grants,
        settings=settings,
        complete_until=chosen.complete_until,
        # The etag leaves them out: whenever one is added, its grants have gone.
        cancelled=machines.given_up_on(
            host, since=now - REMEMBERED, until=now + _SOON, limit=_MAX_CANCELLED
        ),
    )


def plan_epoch() -> str:
    """Which database this is; made once, and anew only by an operator."""
    site, _ = Site.objects.get_or_create(pk=1, defaults={"plan_epoch": _random_epoch()})
    return site.plan_epoch


def new_plan_epoch() -> str:
    """Make hosts accept this database although its plans are older than those they hold."""
    epoch = _random_epoch()
    Site.objects.update_or_create(pk=1, defaults={"plan_epoch": epoch})
    return epoch


def checked_settings(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The same overrides of ``HostSettings``, if a host could act on them.

    Raises:
        Invalid: a name that no setting has, a wrong type, or a number out of range.
    """
    known = set(HostSettings.__struct_fields__) - _NOT_AN_OVERRIDE
    problems = [f"{name} is no setting of a host." for name in sorted(set(overrides) - known)]
    try:
        msgspec.convert(dict(overrides), HostSettings)
    except msgspec.ValidationError as error:
        problems.append(f"{error}.")
    if problems:
        raise Invalid({"settings": problems})
    return dict(overrides)


def _settings_of(host: Host, *, now: datetime) -> HostSettings:
    managed = Device.objects.filter(host=host, managed_by=Device.ManagedBy.BERTH)
    uuids = (
        managed.exclude(state=Device.State.RETIRED).order_by("uuid").values_list("uuid", flat=True)
    )
    overrides = checked_settings(host.settings)
    elsewhere = {"mode": host.mode, "managed": tuple(uuids), "show_owners": site.SHOW_OWNERS}
    settings = msgspec.convert({**overrides, **elsewhere}, HostSettings)
    return msgspec.structs.replace(settings, hold=holds.of_host(host, now=now))


def _random_epoch() -> str:
    return secrets.token_hex(16)
