"""Whether something may be booked: all objections at once, whoever asks and through whatever door."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from reservations.core.errors import Objection
from reservations.core.period import Period
from reservations.core.rules.base import Usage
from reservations.models import Booking, Device, Rule, Team, User
from reservations.selectors import standing
from reservations.selectors.standing import ActiveRule
from reservations.services.actors import Actor

MAX_NAMED = 20


@dataclass(frozen=True)
class Case:
    """What is to be judged: who, for whom, which devices, when."""

    owner: User
    people: Sequence[User]
    team: Team | None
    kind: str
    devices: Sequence[Device]
    period: Period


@dataclass(frozen=True)
class Verdict:
    """``objections`` refuse; ``doubts`` ask for an operator's approval; ``warnings`` only say."""

    objections: list[Objection]
    doubts: list[Objection]
    warnings: list[Objection]
    usage: list[Usage]

    @property
    def needs_approval(self) -> bool:
        return bool(self.doubts)


def rules_for(actor: Actor, *, now: datetime) -> list[ActiveRule]:
    """The rules that bind this actor: an operator's own act is the approval that some ask for."""
    rules = standing.active_rules(now=now)
    if not actor.may_operate:
        return rules
    return [one for one in rules if one.action != Rule.Action.NEEDS_APPROVAL]


def judge(
    case: Case,
    rules: Sequence[ActiveRule],
    *,
    now: datetime,
    added: Iterable[Device] | None = None,
    leave_out: int | None = None,
) -> Verdict:
    """Ask everything that could object.

    ``added`` are the devices that the booking does not have yet (None: all of them); ``leave_out`` is
    the booking under change, which does not count against itself.
    """
    request = standing.request_of(
        owner=case.owner,
        team=case.team,
        kind=case.kind,
        devices=case.devices,
        period=case.period,
    )
    held = standing.standing(
        owner=case.owner, team=case.team, period=case.period, rules=rules, leave_out=leave_out
    )
    heard: dict[str, list[Objection]] = {action: [] for action in Rule.Action.values}
    for one in rules:
        if objection := one.rule.objection(request, held, now):
            heard[one.action].append(objection)
    new_devices = case.devices if added is None else added
    return Verdict(
        objections=[
            *_about_people(case),
            *_about_devices(new_devices, kind=case.kind),
            *heard[Rule.Action.DENY],
        ],
        doubts=heard[Rule.Action.NEEDS_APPROVAL],
        warnings=heard[Rule.Action.WARN],
        usage=[usage for one in rules if (usage := one.rule.usage(request, held, now)) is not None],
    )


def _about_people(case: Case) -> Iterator[Objection]:
    people = [case.owner, *case.people]
    for person in people:
        if not person.is_active:
            yield Objection("inactive", f"{person.name} may not use this site any more.")
        elif person.expires_at is not None and person.expires_at < case.period.end:
            yield Objection(
                "expires",
                f"The access of {person.name} ends on {person.expires_at:%Y-%m-%d %H:%M} UTC, "
                "before this booking does.",
                {"person": person.username},
            )
    if case.kind == Booking.Kind.MAINTENANCE:
        return  # opens no device for anybody, so nobody needs a name there
    hosts = {one.host_id: one.host for one in case.devices}.values()
    for person, host in standing.without_account(people, hosts)[:MAX_NAMED]:
        yield Objection(
            "no_account",
            f"{person.name} has no account on {host.name}. Ask an operator to add it.",
            {"person": person.username, "host": host.name},
        )


def _about_devices(devices: Iterable[Device], *, kind: str) -> Iterator[Objection]:
    for device in list(devices)[:MAX_NAMED]:
        facts = {"device": device.uuid}
        where = f"{device.name} on {device.host.name}"
        managed = device.managed_by == Device.ManagedBy.BERTH
        if not (device.bookable and managed) or device.state == Device.State.RETIRED:
            yield Objection("not_bookable", f"{where} cannot be booked.", facts)
        elif device.state == Device.State.LOST and kind != Booking.Kind.MAINTENANCE:
            yield Objection("device_lost", f"{where} does not answer at present.", facts)
