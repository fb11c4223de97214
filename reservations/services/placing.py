"""Where a wish could go: which devices would do, and the slot on them that fits best."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from reservations.core import slots
from reservations.core.errors import Alternative, Invalid, Objection, Refused, SlotTaken
from reservations.core.period import Period
from reservations.models import Device, Host
from reservations.selectors import busy
from reservations.services import times
from reservations.services.wishes import DeviceFilter, Wish

# How far ahead an earliest slot is looked for: nearby first, which is mostly enough and far cheaper.
NEAR = timedelta(days=2)
SEARCH = timedelta(days=62)
# How far around a slot its fit is judged; a gap that reaches further is simply long.
FIT = timedelta(days=1)

ReadDevices = Callable[[QuerySet[Device]], list[Device]]
ReadNamed = Callable[[Sequence[str]], list[Device]]


@dataclass(frozen=True)
class Choice:
    """The devices to choose from. ``count`` of them are wanted; with named devices, all."""

    candidates: Sequence[Device]
    count: int
    same_host: bool

    def request(self, duration: timedelta) -> slots.SlotRequest:
        candidates = tuple(slots.Candidate(one.uuid, one.host.name) for one in self.candidates)
        return slots.SlotRequest(
            candidates, self.count, duration, same_host=self.same_host, grid=times.grid()
        )

    def taken(self, uuids: Sequence[str]) -> list[Device]:
        chosen = set(uuids)
        return [one for one in self.candidates if one.uuid in chosen]


@dataclass(frozen=True)
class Placement:
    """Named devices at a named time are a placement even where they are not ``free``."""

    devices: list[Device]
    period: Period
    free: bool


def read(wanted: QuerySet[Device]) -> list[Device]:
    """The devices without any lock, for those who only look."""
    return list(wanted.select_related("host").order_by("pk"))


def read_named(uuids: Sequence[str]) -> list[Device]:
    return read(Device.objects.filter(uuid__in=uuids))


def choice_of(
    wish: Wish, *, read_devices: ReadDevices = read, read_named: ReadNamed = read_named
) -> Choice:
    """The devices that the wish names or describes.

    Raises:
        Invalid: a device is named that does not exist.
        Refused: too few devices fit the description, whatever is free.
    """
    if wish.devices:
        found = read_named(wish.devices)
        check_all_found(wish.devices, found)
        return Choice(found, len(found), same_host=False)
    count = wish.count or 1
    found = read_devices(suitable(wish.filter))
    _check_enough(found, count, same_host=wish.filter.same_host)
    return Choice(found, count, same_host=wish.filter.same_host)


def check_all_found(wanted: Sequence[str], found: Sequence[Device]) -> None:
    """Raise ``Invalid`` for each UUID without a device."""
    if missing := sorted(set(wanted) - {one.uuid for one in found}):
        raise Invalid({"devices": [f"There is no device {uuid}." for uuid in missing[:20]]})


def suitable(wanted: DeviceFilter) -> QuerySet[Device]:
    """All devices in order that can be booked and pass the filter."""
    devices = Device.objects.filter(
        bookable=True, managed_by=Device.ManagedBy.BERTH, state=Device.State.OK
    )
    if wanted.model:
        devices = devices.filter(model__iexact=wanted.model)
    if wanted.host:
        devices = devices.filter(host__name=wanted.host)
    if wanted.min_memory_gib:
        devices = devices.filter(memory_bytes__gte=int(wanted.min_memory_gib * 2**30))
    if wanted.labels:
        rows = Host.objects.values_list("pk", "labels")
        hosts = [pk for pk, labels in rows if wanted.labels.items() <= labels.items()]
        devices = devices.filter(host__in=hosts)
    return devices


def place(wish: Wish, choice: Choice, *, now: datetime, leave_out: int | None = None) -> Placement:
    """The devices and the period that the wish comes to.

    Raises:
        Invalid: a time has passed or lies off the grid.
        SlotTaken: it fits nowhere; without blockers.
    """
    if wish.start is None:
        slot = _first_slot(wish, choice, now=now, leave_out=leave_out)
    else:
        period = period_of(wish, now=now)
        slot = _slot_at(choice, period, now=now, leave_out=leave_out)
        if slot is None and wish.devices:
            return Placement(list(choice.candidates), period, free=False)
    if slot is None:
        raise SlotTaken(_nothing_free(choice, wish))
    return Placement(choice.taken(slot.devices), slot.period, free=True)


def period_of(wish: Wish, *, now: datetime) -> Period:
    """The period of a wish that names its start."""
    start = times.settled_start(wish.start or now, now=now)
    end = times.settled_end(wish.end, now=now) if wish.end else None
    end = end or times.end_after(start, wish.duration or times.grid())
    if end <= start:
        raise Invalid({"end": ["The end must be after the start."]})
    return Period(start, end)


def free_slots(
    choice: Choice,
    duration: timedelta,
    *,
    after: datetime,
    limit: int,
    leave_out: int | None = None,
) -> list[Alternative]:
    """The earliest slots from ``after`` on, best first. The duration is rounded up to the grid."""
    found = _earliest(choice, duration, after=after, limit=limit, leave_out=leave_out)
    return [Alternative(one.devices, one.period.start, one.period.end) for one in found]


def _earliest(
    choice: Choice, duration: timedelta, *, after: datetime, limit: int, leave_out: int | None
) -> list[slots.Slot]:
    request = choice.request(_on_grid(duration))
    found: list[slots.Slot] = []
    for reach in (NEAR, SEARCH):
        horizon = after + reach + duration
        held = busy.busy_periods(choice.candidates, after=after, until=horizon, leave_out=leave_out)
        found = slots.earliest(held, request, after=after, horizon=horizon, limit=limit)
        if len(found) == limit:
            break
    return found


def _slot_at(
    choice: Choice, period: Period, *, now: datetime, leave_out: int | None
) -> slots.Slot | None:
    after, horizon = min(period.start, max(now, period.start - FIT)), period.end + FIT
    if choice.count == len(choice.candidates):
        after, horizon = period.start, period.end  # nothing to choose, so no fit to judge
    held = busy.busy_periods(choice.candidates, after=after, until=horizon, leave_out=leave_out)
    request = choice.request(period.duration)
    return slots.at(held, request, start=period.start, after=after, horizon=horizon)


def _first_slot(
    wish: Wish, choice: Choice, *, now: datetime, leave_out: int | None
) -> slots.Slot | None:
    """Now if that is free, else the earliest possible."""
    end = times.settled_end(wish.end, now=now) if wish.end else None
    duration = wish.duration or times.grid()
    from_now = Period(now, end or times.end_after(now, duration))
    if slot := _slot_at(choice, from_now, now=now, leave_out=leave_out):
        return slot
    if end is not None:
        held = busy.busy_periods(choice.candidates, after=now, until=end, leave_out=leave_out)
        return slots.earliest_until(held, choice.request(end - now), after=now, end=end)
    found = _earliest(choice, duration, after=now, limit=1, leave_out=leave_out)
    return found[0] if found else None


def _on_grid(duration: timedelta) -> timedelta:
    """The next multiple of the grid."""
    return -(-duration // times.grid()) * times.grid()


def _check_enough(found: Sequence[Device], count: int, *, same_host: bool) -> None:
    if same_host:
        most = max(Counter(one.host_id for one in found).values(), default=0)
    else:
        most = len(found)
    if most < count:
        where = " on one host" if same_host and count > 1 else ""
        text = f"At most {most} devices{where} fit this description; {count} are asked for."
        raise Refused([Objection("no_such_devices", text, {"fit": most, "asked": count})])


def _nothing_free(choice: Choice, wish: Wish) -> str:
    if wish.start is None:
        return f"Nothing that fits is free within {SEARCH.days} days."
    return f"Fewer than {choice.count} of the devices that fit are free then."
