"""The live value of a device: what is measured, who holds it, and what to make of both.

One text goes to everybody who watches, so it names people only where the site shows names to all.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from reservations.core import usage
from reservations.core.lifecycle import Role
from reservations.core.plan import UnixAccount
from reservations.core.wire import HostSettings, ProcessUse, Sample
from reservations.models import Allocation, Device, Host, User
from reservations.selectors import accounts, machines, visible

# How somebody is called where the site hides names.
HIDDEN = "somebody"


class LiveView:
    """Makes live devices of one host, as everybody may see them."""

    def __init__(
        self, host: Host, devices: Sequence[Device], *, rules: HostSettings, now: datetime
    ) -> None:
        self._now = now
        self._running = machines.running((one.pk for one in devices), now=now)
        self._people = machines.people_of(one.booking for one in self._running.values())
        self._accounts = accounts.unix_accounts(host, now=now)
        self._ignored = frozenset({0, *rules.exempt_uids, *rules.always_open_uids})
        self._names = _names_of(self._accounts)

    def value(self, device: Device, sample: Sample | None) -> dict[str, Any]:
        """One live device, without its ring; names are left out where the site hides them."""
        holding = self._running.get(device.pk)
        reading = sample or Sample(uuid=device.uuid, at=self._now, health="unknown")
        return {
            "uuid": device.uuid,
            "host": device.host.name,
            "at": visible.instant(sample.at) if sample else None,
            "health": reading.health,
            "verdict": self._verdict(device, sample, holding),
            "booking": _booking(holding),
            "utilization_percent": reading.utilization_percent,
            "memory_used_bytes": reading.memory_used_bytes,
            "memory_total_bytes": reading.memory_total_bytes or device.memory_bytes,
            "temperature_c": reading.temperature_c,
            "power_w": reading.power_w,
            "processes": [self._process(one) for one in reading.processes or ()],
        }

    def _verdict(
        self, device: Device, sample: Sample | None, holding: Allocation | None
    ) -> dict[str, Any]:
        verdict = usage.judge(
            usage.Condition(device.state, device.state_since),
            sample,
            held=self._held(holding) if holding else None,
            now=self._now,
            ignored_uids=self._ignored,
            called=lambda name: self._called(name) or HIDDEN,
        )
        return {
            "code": verdict.code,
            "text": verdict.text,
            "since": visible.instant(verdict.since) if verdict.since else None,
            "who": list(verdict.who),
        }

    def _held(self, holding: Allocation) -> usage.Held:
        people = self._people[holding.booking_id]
        owner = visible.owner_shown(holding.booking.owner, Role.STRANGER)
        return usage.Held(
            owner=owner["name"] if owner else HIDDEN,
            start=holding.start,
            unix_names=frozenset(
                self._accounts[pk].unix_name for pk in people if pk in self._accounts
            ),
        )

    def _process(self, process: ProcessUse) -> dict[str, Any]:
        return {
            "pid": process.pid,
            "owner": self._called(process.unix_name) if process.unix_name else None,
            "memory_bytes": process.memory_bytes,
        }

    def _called(self, unix_name: str) -> str | None:
        return self._names.get(unix_name, unix_name) if settings.SHOW_OWNERS else None


def _booking(holding: Allocation | None) -> dict[str, Any] | None:
    if holding is None:
        return None
    return {
        "id": holding.booking_id,
        "owner": visible.owner_shown(holding.booking.owner, Role.STRANGER),
        "end": visible.instant(holding.end),
    }


def _names_of(known: Mapping[int, UnixAccount]) -> dict[str, str]:
    """What people are called, by Unix name."""
    users = User.objects.in_bulk(list(known))
    return {account.unix_name: users[pk].name for pk, account in known.items()}
