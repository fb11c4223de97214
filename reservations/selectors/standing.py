"""What the rules need to know: which apply now, what is held already, who has no account where."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import BigIntegerField, DateTimeField, Q

from reservations import registry
from reservations.core.period import Period
from reservations.core.rules.base import BookingRequest, Rule, Standing, Unit, Usage
from reservations.models import Account, Allocation, Device, Host, Team, User
from reservations.models import Rule as RuleRow
from reservations.prepared import Bind, OneOf, Prepared, columns, instance


@dataclass(frozen=True)
class ActiveRule:
    """A rule with what is to happen when it objects: deny, needs_approval or warn."""

    rule: Rule
    action: str

    @property
    def counts_beyond_owner(self) -> bool:
        return self.rule.counts_held and self.rule.terms.scope != "user"

    @property
    def counts_everybody(self) -> bool:
        return self.rule.counts_held and self.rule.terms.scope == "site"


def active_rules(*, now: datetime) -> list[ActiveRule]:
    """The rules of the site that are valid at this instant, in the order of their names."""
    rows = (instance(RuleRow, row) for row in _VALID_RULES.rows(now=now))
    return [ActiveRule(registry.rule_of(row), row.action) for row in rows]


def standing(
    *,
    owner: User,
    team: Team | None,
    period: Period,
    rules: Sequence[ActiveRule],
    leave_out: int | None = None,
) -> Standing:
    """What is held within the period by those whom the rules count. Confirmed bookings only."""
    if not any(one.rule.counts_held for one in rules):
        return Standing()
    if any(one.counts_everybody for one in rules):
        held = _HELD_BY_ALL
    elif team is not None and any(one.counts_beyond_owner for one in rules):
        held = _HELD_BY_TEAM
    else:
        held = _HELD_BY_OWNER
    rows = held.rows(
        start=period.start,
        end=period.end,
        owner=owner.pk,
        team=team.pk if team else None,
        leave_out=leave_out or 0,
    )
    return Standing(
        tuple(
            Unit(
                host=host,
                model=model,
                period=Period(start, end),
                kind=kind,
                team=team_name,
                owner=owner_id,
                role=_role(person_kind, is_operator=is_operator),
            )
            for host, model, start, end, kind, team_name, owner_id, person_kind, is_operator in rows
        )
    )


def request_of(
    *, owner: User, team: Team | None, kind: str, devices: Iterable[Device], period: Period
) -> BookingRequest:
    """The request in the rules' own words. The devices come with their hosts."""
    team_name = team.name if team else None
    units = tuple(
        Unit(
            host=device.host.name,
            model=device.model,
            period=period,
            kind=kind,
            team=team_name,
            owner=owner.pk,
            role=_role(owner.kind, is_operator=owner.is_operator),
        )
        for device in devices
    )
    return BookingRequest(owner.pk, period, units, team_name)


def without_account(people: Iterable[User], hosts: Iterable[Host]) -> list[tuple[User, Host]]:
    """Who has no name on which host, and so could get no grant there."""
    if settings.UNIX_NAMES == "username":
        return []
    people, hosts = list(people), list(hosts)
    known = set(_ACCOUNTS.rows(people=[one.pk for one in people], hosts=[one.pk for one in hosts]))
    return [
        (person, host)
        for person in people
        for host in hosts
        if not known & {(person.pk, None), (person.pk, host.pk)}
    ]


def limits_left(user: User, *, now: datetime) -> list[Usage]:
    """How somebody stands at this instant against each limit that speaks of ordinary bookings."""
    rules = active_rules(now=now)
    period = Period(now, now + timedelta(microseconds=1))
    held = standing(owner=user, team=None, period=period, rules=rules)
    role = _role(user.kind, is_operator=user.is_operator)
    unit = Unit(host="", model="", period=period, owner=user.pk, role=role)
    request = BookingRequest(user.pk, period, (unit,))
    usages = [one.rule.usage(request, held, now) for one in rules]
    return [usage for usage in usages if usage is not None]


_VALID_RULES = Prepared(
    lambda: (
        RuleRow.objects.filter(
            Q(valid_from=None) | Q(valid_from__lte=Bind("now", DateTimeField())),
            Q(valid_to=None) | Q(valid_to__gt=Bind("now", DateTimeField())),
        )
        .order_by("name")
        .values_list(*columns(RuleRow))
    )
)

_ACCOUNTS = Prepared(
    lambda: Account.objects.filter(
        Q(host=None) | Q(OneOf("host_id", "hosts")), OneOf("user_id", "people")
    ).values_list("user_id", "host_id")
)


def _held(whose: Q) -> Prepared:
    # What is asked of the allocation is asked of its booking too, in which it lies: only so does
    # PostgreSQL see how few rows that leaves, and not read every allocation there ever was.
    start, end = Bind("start", DateTimeField()), Bind("end", DateTimeField())
    return Prepared(
        lambda: (
            Allocation.objects.filter(
                whose,
                holds=True,
                start__lt=end,
                end__gt=start,
                booking__start__lt=end,
                booking__end__gt=start,
            )
            .exclude(booking_id=Bind("leave_out", BigIntegerField()))
            .values_list(
                "device__host__name",
                "device__model",
                "start",
                "end",
                "booking__kind",
                "booking__team__name",
                "booking__owner_id",
                "booking__owner__kind",
                "booking__owner__is_operator",
            )
        )
    )


_OWNERS = Q(booking__owner_id=Bind("owner", BigIntegerField()))
_HELD_BY_OWNER = _held(_OWNERS)
_HELD_BY_TEAM = _held(_OWNERS | Q(booking__team_id=Bind("team", BigIntegerField())))
_HELD_BY_ALL = _held(Q())


def _role(kind: str, *, is_operator: bool) -> str:
    return "operator" if is_operator else kind
