"""Other devices for bookings whose own are gone: same host, same model, before they start.

Only bookings that did not name their devices are moved by themselves. Whatever cannot be kept is
flagged to its owner and the operators; nothing is dropped silently.
"""

import logging
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db.models import Q

from reservations import announce
from reservations.clock import ticking
from reservations.core import slots
from reservations.core.errors import DomainError, NotPossibleNow
from reservations.core.lifecycle import Phase, Verb
from reservations.core.period import Period
from reservations.models import Allocation, Booking, Device
from reservations.selectors import bookings, busy
from reservations.selectors.visible import current_allocations, instant
from reservations.services import allocating, audit, editing, locks, notices, placing, writes
from reservations.services.actors import BERTH, Actor
from reservations.services.placing import Choice

logger = logging.getLogger(__name__)

# A device that comes back within this time keeps its bookings.
LOST_FOR = timedelta(minutes=10)


def rebind(
    booking_id: int, away_from: Collection[str], *, actor: Actor, now: datetime, why: str = ""
) -> Booking:
    """Give an upcoming, unpinned booking other devices in place of these (UUIDs).

    Raises:
        NotFound, Forbidden, Busy
        NotPossibleNow: it is pinned, has begun, or nothing of the same host and model is free.
    """
    clock = ticking(now)

    def work() -> Booking:
        booking = editing.opened(booking_id, Verb.REBIND, actor=actor)
        decided = editing.after_wait(booking, now=now, clock=clock)
        if editing.phase(booking, now=decided) is not Phase.UPCOMING:
            raise NotPossibleNow("Only a booking that has not begun can get other devices.")
        if booking.pinned:
            raise NotPossibleNow("Its owner chose these very devices.")
        rows = current_allocations(booking)
        leaving = [one.device for one in rows if one.device.uuid in away_from]
        if not leaving:
            return booking
        kept = [one.device for one in rows if one.device.uuid not in away_from]
        found = _replacements(booking, leaving, kept, now=now)
        return _give(booking, [*kept, *found], actor=actor, now=now, why=why)

    return writes.run(work, now=now)


def rebind_lost_devices(*, now: datetime) -> int:
    """Look after upcoming bookings on devices lost for ten minutes, or retired; says how many moved."""
    gone = Device.objects.filter(
        Q(state=Device.State.LOST, state_since__lte=now - LOST_FOR) | Q(state=Device.State.RETIRED)
    )
    return move_away(gone, why="the device is gone", actor=BERTH, now=now)


def move_away(devices: Iterable[Device], *, why: str, actor: Actor, now: datetime) -> int:
    """Rebind every upcoming booking on these devices, each by itself; flag those that cannot move."""
    uuids = {one.pk: one.uuid for one in devices}
    rows = Allocation.objects.filter(device_id__in=uuids, holds=True, end__gt=now)
    affected: dict[int, set[str]] = {}
    for booking, device in rows.order_by("start", "id").values_list("booking_id", "device_id"):
        affected.setdefault(booking, set()).add(uuids[device])
    moved = 0
    for booking_id, away_from in affected.items():
        try:
            rebind(booking_id, away_from, actor=actor, now=now, why=why)
            moved += 1
        except DomainError as error:
            flag(booking_id, away_from, why=f"{why}: {error}", now=now)
    return moved


def flag(booking_id: int, uuids: Collection[str], *, why: str, now: datetime) -> None:
    """Tell the trail, the owner and the operators, once, that a booking cannot be kept as it is."""
    booking = bookings.one(booking_id)
    key = f"flagged:{booking.pk}:{','.join(sorted(uuids))}"[:100]

    def work() -> None:
        if not audit.record_once(key, "flagged", actor=BERTH, now=now, why=why, booking=booking):
            return
        text = (
            f"Booking {booking.pk} from {instant(booking.start)} cannot be kept as it is: {why} "
            "Please move it to other devices or cancel it."
        )
        notices.tell([booking.owner_id], "flagged", text, key=key, now=now, booking=booking)
        notices.tell_operators("flagged", text, key=f"operators:{key}", now=now)
        logger.warning("booking=%s flagged: %s", booking.pk, why)

    writes.run(work, now=now)


def take_over(booking_id: int, old: Device, new: Device, *, actor: Actor, now: datetime) -> bool:
    """Put the new card in the old one's place in a booking; says whether it was free for it.

    The part of a running booking that has passed stays with the old card: that is where it ran.
    """

    def work() -> bool:
        booking = editing.opened(booking_id, Verb.REBIND, actor=actor)
        phase = editing.phase(booking, now=now)
        rows = current_allocations(booking)
        mine = next((one for one in rows if one.device_id == old.pk), None)
        if mine is None or phase not in {Phase.UPCOMING, Phase.ACTIVE}:
            return True
        locks.devices_by_key({old.pk, new.pk})
        rest = Period(max(mine.start, now), mine.end)
        if busy.overlapping([new.pk], rest).exists():
            return False
        if phase is Phase.UPCOMING:
            devices = [new if one.device_id == old.pk else one.device for one in rows]
            _give(booking, devices, actor=actor, now=now, why="the card was replaced")
            return True
        before = allocating.snapshot(booking)
        Allocation.objects.filter(pk=mine.pk).update(end=now)
        Allocation.objects.create(booking=booking, device=new, start=now, end=mine.end)
        changed = bookings.one(booking.pk)
        allocating.save_change(changed)
        _tell(changed, before, actor=actor, now=now, why="the card was replaced")
        return True

    return writes.run(work, now=now)


def _give(
    booking: Booking, devices: list[Device], *, actor: Actor, now: datetime, why: str
) -> Booking:
    before = allocating.snapshot(booking)
    allocating.rewrite(booking, devices=devices, period=Period(booking.start, booking.end))
    allocating.save_change(booking)
    _tell(booking, before, actor=actor, now=now, why=why)
    return booking


def _tell(
    booking: Booking, before: dict[str, object], *, actor: Actor, now: datetime, why: str
) -> None:
    allocating.tell(booking, "rebound", actor=actor, now=now, before=before, why=why)
    announce.nudge(allocating.hosts_of(booking))


def _replacements(
    booking: Booking, leaving: list[Device], kept: list[Device], *, now: datetime
) -> list[Device]:
    """A free device of the same host and model for each that leaves; all of them locked."""
    period = Period(booking.start, booking.end)
    alike = Q(host__in={one.host_id for one in leaving}, model__in={one.model for one in leaving})
    ready = Q(bookable=True, managed_by=Device.ManagedBy.BERTH, state=Device.State.OK)
    had = {one.pk for one in [*leaving, *kept]}
    pool = locks.devices(Device.objects.filter(Q(pk__in=had) | (alike & ready)))
    spare = [one for one in pool if one.pk not in had]
    until = period.end + placing.FIT
    held = busy.busy_periods(spare, after=now, until=until)
    found: list[Device] = []
    for host, model in sorted({(one.host_id, one.model) for one in leaving}):
        count = sum((one.host_id, one.model) == (host, model) for one in leaving)
        group = [one for one in spare if (one.host_id, one.model) == (host, model)]
        choice = Choice(group, count, same_host=True)
        slot = slots.at(
            held,
            choice.request(period.duration),
            start=period.start,
            after=now,
            horizon=until,
        )
        if slot is None:
            raise NotPossibleNow(f"No other {model} of that host is free for the whole time.")
        found += choice.taken(slot.devices)
    return found
