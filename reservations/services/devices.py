"""Taking a device out of service, or putting a new card in its place."""

from datetime import datetime

from reservations import announce
from reservations.core.errors import Forbidden, Invalid, NotFound
from reservations.models import Device
from reservations.selectors import busy
from reservations.services import audit, locks, rebinding, writes
from reservations.services.actors import Actor


def retire_device(uuid: str, *, actor: Actor, now: datetime, why: str = "") -> Device:
    """Nobody can book it from now on. Its upcoming bookings are rebound or flagged, its past stays.

    Raises:
        Forbidden, NotFound, Busy
    """
    _check_operator(actor)

    def work() -> Device:
        device = _one(uuid)
        _retire(device, actor=actor, now=now, why=why)
        return device

    device = writes.run(work, now=now)
    rebinding.move_away([device], why="the device was retired", actor=actor, now=now)
    return device


def replace_device(uuid: str, by: str, *, actor: Actor, now: datetime) -> list[int]:
    """Move all bookings of a card to the new one in its host; gives the ids of those that clash there.

    The new card can be booked as the old one could. Clashing bookings are flagged.

    Raises:
        Forbidden, NotFound, Invalid, Busy
    """
    _check_operator(actor)

    def work() -> tuple[Device, Device]:
        found = {one.uuid: one for one in locks.devices(Device.objects.filter(uuid__in={uuid, by}))}
        if missing := {uuid, by} - found.keys():
            raise NotFound(f"There is no device {', '.join(sorted(missing))}.")
        old, new = found[uuid], found[by]
        _check_replacement(old, new)
        new.bookable, new.managed_by = old.bookable, old.managed_by
        new.save(update_fields=["bookable", "managed_by"])
        _retire(old, actor=actor, now=now, why=f"replaced by {new.uuid}")
        return old, new

    old, new = writes.run(work, now=now)
    clashes = []
    for booking_id in dict.fromkeys(
        busy.promised([old.pk], now=now).values_list("booking_id", flat=True)
    ):
        if not rebinding.take_over(booking_id, old, new, actor=actor, now=now):
            why = f"its card was replaced, and {new.name} is booked by somebody else then."
            rebinding.flag(booking_id, {old.uuid}, why=why, now=now)
            clashes.append(booking_id)
    return clashes


def _check_operator(actor: Actor) -> None:
    if not actor.may_operate:
        raise Forbidden("Only operators take devices out of service.")


def _check_replacement(old: Device, new: Device) -> None:
    if old.pk == new.pk:
        raise Invalid({"by": ["A card cannot replace itself."]})
    if old.host_id != new.host_id:
        raise Invalid({"by": [f"{new.name} is not in {old.host.name}."]})
    if new.state == Device.State.RETIRED:
        raise Invalid({"by": [f"{new.name} has been retired itself."]})
    if new.children.exists() or new.parent_id != old.parent_id:
        raise Invalid({"by": [f"{new.name} is not a whole device like the old one."]})


def _one(uuid: str) -> Device:
    found = locks.devices(Device.objects.filter(uuid=uuid))
    if not found:
        raise NotFound(f"There is no device {uuid}.")
    return found[0]


def _retire(device: Device, *, actor: Actor, now: datetime, why: str) -> None:
    before = {"state": device.state, "bookable": device.bookable}
    device.state, device.state_since, device.bookable = Device.State.RETIRED, now, False
    device.save(update_fields=["state", "state_since", "bookable"])
    after = {"state": device.state, "bookable": False}
    audit.record(
        "retired",
        actor=actor,
        now=now,
        why=why,
        host=device.host,
        device=device,
        before=before,
        after=after,
    )
    announce.nudge([device.host.name])
