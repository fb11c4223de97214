"""What a host says it has: new devices, new places, devices that are gone or back.

A device is known by its UUID. One that is seen for the first time is neither managed nor bookable
until an operator says so: adding a host stops nobody's running jobs.
"""

from collections.abc import Mapping
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q

from reservations.core.errors import DeviceElsewhere, Invalid, NotFound
from reservations.core.wire import DeviceInfo, Inventory
from reservations.models import Allocation, Device, Host
from reservations.services import audit, locks, notices
from reservations.services.actors import Actor
from reservations.services.hosts import host_actor

# What the vendor says of a device today.
_DESCRIBED = ("vendor", "kind", "index", "model", "memory_bytes", "minor", "bus_id")


def store_inventory(host: Host, inventory: Inventory, *, now: datetime) -> None:
    """Take over what the host sees.

    Raises:
        DeviceElsewhere: a UUID is registered on another host. Nothing is taken over then.
        Invalid: a UUID twice, or a parent that is not in the inventory.
    """
    found = {info.uuid: info for info in inventory.devices}
    _check(inventory, found)
    try:
        with transaction.atomic():
            _store(host, found, now=now)
    except DeviceElsewhere as error:
        _tell_elsewhere(host, str(error), now=now)
        raise
    except IntegrityError as error:
        # Two hosts named the same new device at once, and the other was first.
        if not Device.objects.filter(uuid__in=found).exclude(host=host).exists():
            raise
        raise DeviceElsewhere("A device is registered on another host.") from error


def _tell_elsewhere(host: Host, text: str, *, now: datetime) -> None:
    notices.tell_operators(
        "device_elsewhere",
        f"{host.name} names a device that it may not: {text} "
        "If the card has moved, retire it on the other host.",
        key=f"device_elsewhere:{host.pk}:{now:%Y-%m-%d}",
        now=now,
    )


def _check(inventory: Inventory, found: Mapping[str, DeviceInfo]) -> None:
    if len(found) < len(inventory.devices):
        raise Invalid({"devices": ["A UUID is named twice."]})
    for info in inventory.devices:
        parent = found.get(info.parent) if info.parent else None
        if info.parent and (parent is None or parent.parent):
            raise Invalid({"devices": [f"{info.uuid} is part of a device that is not named here."]})


def _store(host: Host, found: Mapping[str, DeviceInfo], *, now: datetime) -> None:
    rows = locks.devices(Device.objects.filter(Q(host=host) | Q(uuid__in=found)))
    known = {row.uuid: row for row in rows}
    for row in rows:
        if row.host_id != host.pk:
            _take_over(row, host, now=now)
    # Whole devices first: a part refers to its parent.
    for info in sorted(found.values(), key=lambda info: info.parent is not None):
        parent = known[info.parent] if info.parent else None
        if info.uuid in known:
            _update(known[info.uuid], info, parent, now=now)
        else:
            known[info.uuid] = _add(host, info, parent, now=now)
    for uuid, row in known.items():
        if uuid not in found:
            mark_lost(row, now=now)
    for pk in {row.parent_id for row in known.values() if row.parent_id and row.uuid in found}:
        _divide(next(row for row in known.values() if row.pk == pk), now=now)


def _take_over(row: Device, host: Host, *, now: datetime) -> None:
    """A retired card may turn up on another host: there it starts anew."""
    if row.state != Device.State.RETIRED:
        raise DeviceElsewhere(f"{row.uuid} is registered on {row.host.name}.")
    row.host, row.parent = host, None
    row.managed_by, row.bookable = Device.ManagedBy.NONE, False
    row.save(update_fields=["host", "parent", "managed_by", "bookable"])
    _set_state(row, Device.State.OK, now=now)
    _record("device_moved", row, now=now)


def _add(host: Host, info: DeviceInfo, parent: Device | None, *, now: datetime) -> Device:
    described = {name: getattr(info, name) for name in _DESCRIBED}
    device = Device.objects.create(
        uuid=info.uuid, host=host, parent=parent, state_since=now, **described
    )
    _record("device_added", device, now=now)
    return device


def _update(row: Device, info: DeviceInfo, parent: Device | None, *, now: datetime) -> None:
    changed = [name for name in _DESCRIBED if getattr(row, name) != getattr(info, name)]
    for name in changed:
        setattr(row, name, getattr(info, name))
    if row.parent_id != (parent.pk if parent else None):
        row.parent = parent
        changed.append("parent")
    if changed:
        row.save(update_fields=changed)
    mark_back(row, now=now)


def mark_lost(row: Device, *, now: datetime) -> None:
    """The host no longer reaches the device. Repeating it changes nothing."""
    if row.state in {Device.State.LOST, Device.State.RETIRED}:
        return
    _set_state(row, Device.State.LOST, now=now)
    _record("device_lost", row, now=now)
    notices.tell_operators(
        "device_lost",
        f"{row.name} on {row.host.name} is lost: the host no longer reaches it.",
        key=f"device_lost:{row.pk}:{now.isoformat()}",
        now=now,
    )


def mark_back(row: Device, *, now: datetime) -> None:
    """The host reaches the device again. One that needs attention waits for an operator all the same."""
    if row.state == Device.State.LOST:
        _set_state(row, Device.State.OK, now=now)
        _record("device_back", row, now=now)


def mark_fine(host: str, uuid: str, *, actor: Actor, now: datetime) -> Device:
    """An operator has looked at a device that needed attention. Repeating it changes nothing.

    Raises:
        Forbidden, NotFound
    """
    actor.check_operates()
    with transaction.atomic():
        rows = locks.devices(Device.objects.filter(host__name=host, uuid=uuid))
        if not rows:
            raise NotFound("There is no such device.")
        if rows[0].state == Device.State.NEEDS_ATTENTION:
            _set_state(rows[0], Device.State.OK, now=now)
            audit.record("device_fine", actor=actor, now=now, host=rows[0].host, device=rows[0])
    return rows[0]


def mark_needs_attention(row: Device, *, now: datetime) -> None:
    if row.state == Device.State.OK:
        _set_state(row, Device.State.NEEDS_ATTENTION, now=now)


def mark_recovered(row: Device, *, now: datetime) -> None:
    """What could not be ended is gone, and that alone was the matter. Repeating it changes nothing."""
    if row.state == Device.State.NEEDS_ATTENTION:
        _set_state(row, Device.State.OK, now=now)
        _record("device_recovered", row, now=now)


def _divide(parent: Device, *, now: datetime) -> None:
    """A device with parts is not bookable: otherwise a GPU and its slice could both be booked."""
    if not parent.bookable:
        return
    parent.bookable = False
    parent.save(update_fields=["bookable"])
    _record("device_divided", parent, now=now)
    if Allocation.objects.filter(device=parent, holds=True, end__gt=now).exists():
        notices.tell_operators(
            "device_divided",
            f"{parent.name} on {parent.host.name} has been divided while bookings hold it. "
            "Move these bookings to its parts or to another device.",
            key=f"device_divided:{parent.pk}:{now.isoformat()}",
            now=now,
        )


def _set_state(row: Device, state: Device.State, *, now: datetime) -> None:
    row.state, row.state_since = state, now
    row.save(update_fields=["state", "state_since"])


def _record(verb: str, device: Device, *, now: datetime) -> None:
    actor = host_actor(device.host)
    audit.record(verb, actor=actor, now=now, host=device.host, device=device)
