"""Writing bookings and their allocations. Callers hold the locks and have looked."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from reservations import announce, prepared
from reservations.core.period import Period
from reservations.models import Allocation, Booking, Device, User
from reservations.selectors import bookings
from reservations.selectors.visible import current_allocations, instant
from reservations.services import audit, notices, openings
from reservations.services.actors import Actor

# How a notice says it, where the verb of the trail does not fit into "… your booking 12".
_DONE = {"booked": "made", "rebound": "chose other devices for", "flagged": "could not keep"}


def insert(booking: Booking, *, devices: Iterable[Device], people: Sequence[User]) -> None:
    """Write a new booking with its allocations, which hold unless it is pending."""
    prepared.insert([booking])
    if people:
        booking.people.add(*people)
    holds = booking.state == Booking.State.CONFIRMED
    allocations = [
        Allocation(
            booking=booking, device=device, start=booking.start, end=booking.end, holds=holds
        )
        for device in devices
    ]
    prepared.insert(allocations)
    bookings.remember(booking, allocations=allocations, people=people)


def rewrite(booking: Booking, *, devices: Sequence[Device], period: Period) -> None:
    """Give the booking these devices for this period, in two passes.

    First all its rows let go, then the new values are written: on the way there no row can clash with
    another of the same change, whatever order the database writes them in.
    """
    rows = current_allocations(booking)
    began = {one.device_id: one.start for one in rows if one.start != booking.start}
    Allocation.objects.filter(pk__in=[one.pk for one in rows]).update(holds=False)
    kept = [one for one in rows if one.device_id in {device.pk for device in devices}]
    spare = [one for one in rows if one not in kept]
    added = [one for one in devices if one.pk not in {row.device_id for row in kept}]
    for row, device in zip(spare, added, strict=False):
        row.device = device
        kept.append(row)
    for row in kept:
        row.start, row.end, row.holds = began.get(row.device_id, period.start), period.end, True
    Allocation.objects.bulk_update(kept, ["device", "start", "end", "holds"])
    Allocation.objects.filter(pk__in=[one.pk for one in spare[len(added) :]]).delete()
    fresh = Allocation.objects.bulk_create(
        Allocation(booking=booking, device=device, start=period.start, end=period.end)
        for device in added[len(spare) :]
    )
    ended = [one for one in booking.allocations.all() if one not in rows]
    bookings.remember(
        booking, allocations=[*ended, *kept, *fresh], people=list(booking.people.all())
    )
    booking.start, booking.end = period.start, period.end


def cut(booking: Booking, *, end: datetime) -> None:
    """End a running booking now: its devices are free from this instant on."""
    rows = current_allocations(booking)
    Allocation.objects.filter(pk__in=[one.pk for one in rows]).update(end=end)
    for row in rows:
        row.end = end
    booking.end = end


def let_go(booking: Booking) -> None:
    """The rows stay as history and hold nothing."""
    Allocation.objects.filter(booking=booking).update(holds=False)


def save_change(booking: Booking, *fields: str) -> None:
    booking.revision += 1
    booking.save(update_fields=[*fields, "revision"])
    if booking.held_back_since is not None:
        openings.note(booking)


def snapshot(booking: Booking) -> dict[str, Any]:
    """What the audit trail keeps of a booking, before and after."""
    return {
        "start": instant(booking.start),
        "end": instant(booking.end),
        "state": booking.state,
        "devices": [one.device.uuid for one in current_allocations(booking)],
        "purpose": booking.purpose,
    }


def tell(
    booking: Booking,
    verb: str,
    *,
    actor: Actor,
    now: datetime,
    before: dict[str, Any] | None = None,
    why: str = "",
) -> None:
    """Write the change to the trail, to the owner if somebody else made it, and announce it."""
    audit.record(
        verb,
        actor=actor,
        now=now,
        why=why,
        booking=booking,
        before=before,
        after=snapshot(booking),
    )
    if actor.person is None or actor.person.pk != booking.owner_id:
        notices.tell(
            [booking.owner_id],
            verb,
            _notice(booking, verb, actor=actor, why=why),
            key=f"{verb}:{booking.pk}:{booking.revision}",
            now=now,
            booking=booking,
        )
    announce.booking_changed(booking)


def hosts_of(booking: Booking) -> set[str]:
    return {one.device.host.name for one in booking.allocations.all()}


def _notice(booking: Booking, verb: str, *, actor: Actor, why: str) -> str:
    who = actor.user.name if actor.user else "Berth"
    devices = current_allocations(booking)
    names = ", ".join(f"{one.device.name} on {one.device.host.name}" for one in devices[:3])
    more = f" and {len(devices) - 3} more" if len(devices) > 3 else ""
    reason = f" Reason: {why}" if why else ""
    return (
        f"{who} {_DONE.get(verb, verb)} your booking {booking.pk} ({names}{more}), now {instant(booking.start)} to "
        f"{instant(booking.end)}.{reason}"
    )
