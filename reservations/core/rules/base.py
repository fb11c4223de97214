"""What a rule is given, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Protocol

from reservations.core.errors import Objection
from reservations.core.period import Period

MATCH_KEYS = frozenset({"kind", "role", "team", "host", "model"})
SCOPES = frozenset({"user", "team", "site"})


@dataclass(frozen=True, slots=True)
class Unit:
    """One device, for one period, of one booking: asked for, or held already."""

    host: str
    model: str
    period: Period
    kind: str = "normal"
    team: str | None = None
    owner: int | None = None
    role: str = "person"


@dataclass(frozen=True, slots=True)
class BookingRequest:
    """What somebody asks for, after devices and period have been settled. Never without a unit."""

    owner: int
    period: Period
    units: tuple[Unit, ...]
    team: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What is held already within the period of the request, the booking under change left out."""

    held: tuple[Unit, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """How much of a rule's limit is used, for somebody who plans. ``unit``: hours, days, devices."""

    rule: str
    kind: str
    unit: str
    limit: float
    used: float
    asked: float


@dataclass(frozen=True)
class Terms:
    """What every rule has, whatever its kind: a row of the rule table in plain data."""

    name: str
    limit: float
    match: Mapping[str, Any] = field(default_factory=dict)
    scope: str = "user"

    def covers(self, unit: Unit) -> bool:
        """Whether the rule speaks of this unit: every key of ``match`` must fit."""
        return all(_fits(wanted, getattr(unit, key)) for key, wanted in self.match.items())

    def covered(self, request: BookingRequest) -> list[Unit]:
        return [unit for unit in request.units if self.covers(unit)]


class Rule(Protocol):
    """One kind of rule. Made once for each row; asked for every booking."""

    kind: ClassVar[str]
    unit: ClassVar[str]
    # Whether it needs to know what is held already, beyond the owner's own.
    counts_held: ClassVar[bool]

    def __init__(self, terms: Terms) -> None: ...

    @property
    def terms(self) -> Terms: ...

    def objection(
        self, request: BookingRequest, standing: Standing, now: datetime
    ) -> Objection | None:
        """Why the request must be refused, or None to let it pass."""
        ...

    def usage(self, request: BookingRequest, standing: Standing, now: datetime) -> Usage | None:
        """How the request stands against the limit; None if the rule does not speak of it."""
        ...


def check_match(match: Any) -> str | None:
    """What is wrong with the ``match`` of a rule row, or None."""
    if not isinstance(match, Mapping):
        return "match must be an object"
    if unknown := sorted(set(match) - MATCH_KEYS):
        return f"match has unknown keys: {', '.join(unknown)}"
    for key, wanted in match.items():
        words = [wanted] if isinstance(wanted, str) else wanted
        if not (isinstance(words, list) and all(isinstance(word, str) for word in words)):
            return f"match {key} must be a text or a list of texts"
    return None


def plain(number: float) -> str:
    """A figure as people write it: 7, not 7.0; 1.5; at most two decimals."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def counted(number: float, unit: str) -> str:
    """``1 day``, ``7 days``: the unit is given in the plural."""
    return f"{plain(number)} {unit.removesuffix('s') if number == 1 else unit}"


def _fits(wanted: str | list[str], value: str | None) -> bool:
    return value == wanted if isinstance(wanted, str) else value in wanted
