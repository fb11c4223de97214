"""What can go wrong in the domain, each with a stable code. Doors map them once (api/errors.py, pages)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar


class DomainError(Exception):
    """Base of every refusal. ``str(error)`` is a sentence for the person who asked."""

    code: ClassVar[str]


class Invalid(DomainError):
    """The input does not make sense; ``errors`` names each field with its sentences."""

    code = "invalid"

    def __init__(self, errors: Mapping[str, Sequence[str]]) -> None:
        super().__init__("; ".join(text for texts in errors.values() for text in texts))
        self.errors = {name: list(texts) for name, texts in errors.items()}


class Forbidden(DomainError):
    """Known who asks, but this person may not do that."""

    code = "forbidden"


class NotFound(DomainError):
    """There is no such thing, or it is not for this person to know."""

    code = "not_found"


@dataclass(frozen=True, slots=True)
class Blocker:
    """A booking that stands in the way on one device. ``owner`` is None where names are masked."""

    device: str
    start: datetime
    end: datetime
    owner: str | None = None
    booking: int | None = None


@dataclass(frozen=True, slots=True)
class Alternative:
    """A slot that was free when it was looked up."""

    devices: tuple[str, ...]
    start: datetime
    end: datetime


class SlotTaken(DomainError):
    """At least one device is booked by somebody else within the period."""

    code = "slot_taken"

    def __init__(
        self, text: str, blockers: Sequence[Blocker] = (), alternatives: Sequence[Alternative] = ()
    ) -> None:
        super().__init__(text)
        self.blockers = list(blockers)
        self.alternatives = list(alternatives)


class NotPossibleNow(DomainError):
    """The booking's phase does not allow it, such as moving the start of a running one."""

    code = "not_possible_now"


class Stale(DomainError):
    """Somebody changed the booking since; ``current`` is its revision now."""

    code = "stale"

    def __init__(self, text: str, *, booking: int, current: int) -> None:
        super().__init__(text)
        self.booking = booking
        self.current = current


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a rule refuses, in words with figures. ``facts`` are the figures for machines."""

    rule: str
    text: str
    facts: Mapping[str, Any] = field(default_factory=dict)


class Refused(DomainError):
    """Rules object. All objections at once, so that nobody learns of one fault at a time."""

    code = "refused"

    def __init__(
        self, objections: Sequence[Objection], alternatives: Sequence[Alternative] = ()
    ) -> None:
        super().__init__(" ".join(objection.text for objection in objections))
        self.objections = list(objections)
        self.alternatives = list(alternatives)


class IdempotencyMismatch(DomainError):
    """The key was used before for another request."""

    code = "idempotency_mismatch"


class Busy(DomainError):
    """A lock was not to be had in time; nothing was changed. Try again after ``retry_after_s``."""

    code = "busy"
    retry_after_s: ClassVar[int] = 1


class DeviceElsewhere(DomainError):
    """A host names a device that is registered on another host."""

    code = "device_elsewhere"
