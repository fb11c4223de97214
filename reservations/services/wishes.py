"""What somebody asks for, and whether it makes sense at all, before any row is looked at."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reservations.core.errors import Invalid

MAX_DEVICES = 1_000
MAX_PEOPLE = 200
MAX_PURPOSE = 200
MAX_LABELS = 50
MAX_NAME = 200
# Nothing is booked further away or for longer; keeps all arithmetic far from the calendar's ends.
FARTHEST = timedelta(days=3_660)


@dataclass(frozen=True)
class DeviceFilter:
    """Which devices would do. ``labels`` are those of the host."""

    model: str | None = None
    host: str | None = None
    min_memory_gib: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    same_host: bool = True


@dataclass(frozen=True)
class Wish:
    """Either these ``devices`` (UUIDs), or ``count`` of those that pass ``filter``.

    Without ``start``: now if that is free, else the earliest possible. The end is either ``end`` or
    ``duration`` after the start, then rounded up to the grid. ``owner`` None means the actor;
    ``owner`` and ``people`` are usernames, ``team`` is a name.
    """

    devices: tuple[str, ...] = ()
    count: int | None = None
    filter: DeviceFilter = DeviceFilter()
    start: datetime | None = None
    end: datetime | None = None
    duration: timedelta | None = None
    purpose: str = ""
    team: str | None = None
    people: tuple[str, ...] = ()
    keep_if_free: bool = False
    early_signal: bool = False
    owner: str | None = None
    kind: str = "normal"


@dataclass(frozen=True)
class Change:
    """What to change of a booking; None leaves a thing as it is."""

    start: datetime | None = None
    end: datetime | None = None
    devices: tuple[str, ...] | None = None
    purpose: str | None = None

    @property
    def only_words(self) -> bool:
        """Whether neither time nor devices are touched, so that nothing has to be judged anew."""
        return self.start is None and self.end is None and self.devices is None


class Faults:
    """Collects what is wrong, so that all of it is said at once."""

    def __init__(self) -> None:
        self._errors: dict[str, list[str]] = {}

    def add(self, name: str, text: str) -> None:
        self._errors.setdefault(name, []).append(text)

    def check(self) -> None:
        """Raise ``Invalid`` if anything was added."""
        if self._errors:
            raise Invalid(self._errors)


def check_wish(wish: Wish, *, now: datetime) -> None:
    """Raise ``Invalid``, with all its faults, for a wish that makes no sense whatever is free."""
    faults = Faults()
    _check_choice(wish, faults)
    check_instant("start", wish.start, faults, now=now)
    check_instant("end", wish.end, faults, now=now)
    if (wish.end is None) == (wish.duration is None):
        faults.add("end", "Give either the end or the duration.")
    check_duration(wish.duration, faults)
    _check_order(wish.start, wish.end, faults)
    _check_names(wish, faults)
    check_words("purpose", wish.purpose, faults, limit=MAX_PURPOSE)
    if len(wish.people) > MAX_PEOPLE:
        faults.add("people", f"At most {MAX_PEOPLE} people can use one booking.")
    if wish.kind not in {"normal", "service", "maintenance"}:
        faults.add("kind", "The kind is normal, service or maintenance.")
    faults.check()


def check_change(change: Change, *, now: datetime) -> None:
    """The same for a change."""
    faults = Faults()
    check_instant("start", change.start, faults, now=now)
    check_instant("end", change.end, faults, now=now)
    if change.devices is not None:
        check_devices(change.devices, faults)
        for uuid in change.devices[:MAX_DEVICES]:
            check_words("devices", uuid, faults, limit=MAX_NAME)
    if change.purpose is not None:
        check_words("purpose", change.purpose, faults, limit=MAX_PURPOSE)
    faults.check()


def check_instant(name: str, instant: datetime | None, faults: Faults, *, now: datetime) -> None:
    if instant is None:
        return
    if instant.tzinfo is None:
        faults.add(name, "The time needs an offset, such as 2027-03-01T12:00+01:00.")
    elif not _within_reach(instant, now):
        faults.add(name, f"Times must lie within {FARTHEST.days} days from now.")


def check_duration(duration: timedelta | None, faults: Faults) -> None:
    if duration is None:
        return
    if duration <= timedelta(0):
        faults.add("duration_s", "The duration must be positive.")
    elif duration > FARTHEST:
        faults.add("duration_s", f"The duration can be at most {FARTHEST.days} days.")


def check_devices(devices: Sequence[str], faults: Faults) -> None:
    if not devices:
        faults.add("devices", "Name at least one device.")
    elif len(devices) > MAX_DEVICES:
        faults.add("devices", f"At most {MAX_DEVICES} devices can be booked as one.")
    elif len(set(devices)) < len(devices):
        faults.add("devices", "A device is named twice.")


def check_words(name: str, text: str, faults: Faults, *, limit: int) -> None:
    """Any language and any emoji, but no control characters: they break lines, feeds and terminals."""
    if len(text) > limit:
        faults.add(name, f"At most {limit} characters, not {len(text)}.")
    if any(unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} for letter in text):
        faults.add(name, "Control characters and line breaks are not allowed.")


def _check_choice(wish: Wish, faults: Faults) -> None:
    if bool(wish.devices) == (wish.count is not None):
        faults.add("devices", "Give either devices or a count.")
    elif wish.devices:
        check_devices(wish.devices, faults)
    elif not 1 <= (wish.count or 0) <= MAX_DEVICES:
        faults.add("count", f"The count must be from 1 to {MAX_DEVICES}.")
    if len(wish.filter.labels) > MAX_LABELS:
        faults.add("labels", f"At most {MAX_LABELS} labels.")
    memory = wish.filter.min_memory_gib
    if memory is not None and not 0 <= memory <= 2**20:
        faults.add("min_memory_gib", "The memory must be from 0 to 1048576 GiB.")


def _check_order(start: datetime | None, end: datetime | None, faults: Faults) -> None:
    if start is None or end is None or start.tzinfo is None or end.tzinfo is None:
        return
    if start >= end:
        faults.add("end", "The end must be after the start.")


def _check_names(wish: Wish, faults: Faults) -> None:
    """Names that nothing can have are not looked up; a database refuses some of them in its own words."""
    named = {
        "owner": [wish.owner or ""],
        "team": [wish.team or ""],
        "people": wish.people,
        "devices": wish.devices,
        "model": [wish.filter.model or ""],
        "host": [wish.filter.host or ""],
        "labels": [*wish.filter.labels, *wish.filter.labels.values()],
    }
    for field_name, names in named.items():
        for name in names:
            check_words(field_name, name, faults, limit=MAX_NAME)


def _within_reach(instant: datetime, now: datetime) -> bool:
    try:
        return abs(instant - now) <= FARTHEST
    except OverflowError:
        return False
