"""Whom a host would stop if it enforced from now on, from what it measures and what is booked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

import msgspec

from reservations import livestore
from reservations.core import preview
from reservations.core.enforcement import Holder, HostGrant
from reservations.core.preview import Why
from reservations.core.usage import FRESH
from reservations.core.wire import Grant, HostSettings, ProcessUse
from reservations.models import Booking, Device, Host, User
from reservations.selectors import accounts
from reservations.services import plans

# People whose uid nobody has told: they run nothing here, and only keep their devices.
_NOBODY: Final = 2**32
# A process that does not say when it began may be as old as can be.
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Line:
    """One person (or container of nobody) on one device. ``since`` is None where it is not known.

    ``at`` is None where nobody would stop them; ``needed_by`` is the owner of ``booking``. ``booked``:
    they have the device now, and are on it rightly until then.
    """

    person: str
    unix_name: str
    container: str
    device: Device
    pids: tuple[int, ...]
    since: datetime | None
    at: datetime | None
    why: Why | None
    booking: int | None
    needed_by: str
    booked: bool = False


@dataclass(frozen=True)
class Preview:
    """``data_at`` is the oldest reading that this rests on, None where there is none at all.

    ``unread``: devices of whose use nothing is known. ``unnamed``: pids whose person the host cannot
    name; they are stopped by nobody. ``key`` is the same while the same people would be stopped for
    the same reasons.
    """

    lines: tuple[Line, ...]
    data_at: datetime | None
    unread: tuple[Device, ...]
    unnamed: tuple[int, ...]
    fire_held_at: datetime | None
    kill_budget: int
    adopt_h: float
    key: str
    now: datetime

    @property
    def people(self) -> int:
        """How many are there without a booking of theirs."""
        lines = [line for line in self.lines if not line.booked]
        return len({line.unix_name or line.container for line in lines})

    @property
    def age(self) -> timedelta | None:
        """How old the data is, if that is too old to be called the present."""
        age = self.now - self.data_at if self.data_at else None
        return age if age and age > FRESH else None


def of_host(host: Host, *, now: datetime) -> Preview:
    """As the plan and the newest readings are."""
    plan = plans.plan_for(host, now=now)
    devices = {one.uuid: one for one in _managed(host, plan.settings)}
    samples = livestore.samples(list(devices))
    uses = {uuid: samples[uuid].processes for uuid in devices if uuid in samples}
    read = {uuid: found for uuid, found in uses.items() if found is not None}
    uids = _uids(read.values(), plan.grants)
    holders = {uuid: _holders(found) for uuid, found in read.items()}
    grants = [_host_grant(grant, uids) for grant in plan.grants]
    foreseen = preview.foresee(grants, holders, settings=plan.settings, now=now)
    names = {uid: name for name, uid in uids.items()}
    holding = {(one.device, one.uid) for one in grants if one.runs(now)}
    found = _lines(host, devices, foreseen.stops, names, now)
    lines = tuple(
        sorted(
            (
                replace(one, booked=(one.device.uuid, uids.get(one.unix_name)) in holding)
                for one in found
            ),
            key=_order,
        )
    )
    return Preview(
        lines=lines,
        data_at=min((samples[uuid].at for uuid in read), default=None),
        unread=tuple(one for uuid, one in devices.items() if uuid not in read),
        unnamed=tuple(
            sorted(one.pid for found in read.values() for one in found if _nameless(one))
        ),
        fire_held_at=foreseen.fire_held_at,
        kill_budget=plan.settings.kill_budget,
        adopt_h=plan.settings.adopt_h,
        key=_key(lines),
        now=now,
    )


def _managed(host: Host, settings: HostSettings) -> Iterable[Device]:
    found = Device.objects.filter(host=host, uuid__in=settings.managed)
    return found.select_related("host").order_by("index", "uuid")


def _nameless(process: ProcessUse) -> bool:
    return process.uid is None and not process.graphics_only and process.protected is None


def _uids(uses: Iterable[Sequence[ProcessUse]], grants: Sequence[Grant]) -> dict[str, int]:
    """The uid of everybody with a process or a grant on the host, by Unix name."""
    names = {grant.unix_name: grant.expected_uid for grant in grants}
    known = {name: uid for name, uid in names.items() if uid is not None}
    for found in uses:
        known |= {one.unix_name: one.uid for one in found if one.unix_name and one.uid is not None}
    missing = sorted(names.keys() - known.keys())
    return {**known, **{name: _NOBODY + number for number, name in enumerate(missing)}}


def _holders(found: Iterable[ProcessUse]) -> tuple[Holder, ...]:
    return tuple(
        Holder(
            pid=one.pid,
            uid=one.uid,
            uids=(one.uid,),
            started=one.started or _LONG_AGO,
            protected=_protection(one),
            container=one.container,
        )
        for one in found
        if one.uid is not None
    )


def _protection(process: ProcessUse) -> str | None:
    if process.graphics_only:
        return "it only draws"
    return "root" if process.uid == 0 else process.protected


def _host_grant(grant: Grant, uids: Mapping[str, int]) -> HostGrant:
    return HostGrant(
        booking=grant.booking,
        device=grant.device,
        uid=uids[grant.unix_name],
        unix_name=grant.unix_name,
        start=grant.start,
        end=grant.end,
    )


def _lines(
    host: Host,
    devices: Mapping[str, Device],
    stops: Sequence[preview.Stop],
    names: Mapping[int, str],
    now: datetime,
) -> tuple[Line, ...]:
    known = accounts.unix_accounts(host, now=now)
    users = User.objects.in_bulk(list(known))
    called = {account.unix_name: users[pk].name for pk, account in known.items()}
    owners = _owners({stop.booking for stop in stops if stop.booking is not None})
    return tuple(
        Line(
            person=called.get(names.get(stop.party.uid, ""), ""),
            unix_name=names.get(stop.party.uid, f"uid {stop.party.uid}"),
            container=stop.party.container or "",
            device=devices[stop.device],
            pids=stop.pids,
            since=None if stop.since == _LONG_AGO else stop.since,
            at=stop.at,
            why=stop.why,
            booking=stop.booking,
            needed_by=owners.get(stop.booking or 0, ""),
        )
        for stop in stops
    )


def _order(line: Line) -> tuple[bool, bool, float, int]:
    """Who has no right before who has one, then the earliest, then by device."""
    at = line.at.timestamp() if line.at else 0.0
    return (line.booked, line.at is None, at, line.device.index)


def _owners(keys: Iterable[int]) -> dict[int, str]:
    rows = Booking.objects.filter(pk__in=list(keys)).select_related("owner")
    return {row.pk: row.owner.name for row in rows}


def _key(lines: Iterable[Line]) -> str:
    facts = sorted(
        (line.device.uuid, line.unix_name, line.container, line.why or "") for line in lines
    )
    return sha256(msgspec.json.encode(facts)).hexdigest()[:16]
