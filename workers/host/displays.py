"""Devices that drive a display: never gated, and nobody is stopped on them, unless it was asked for.

A closed node keeps the next desktop from starting, and who works at that desktop has booked nothing.
"""

from collections.abc import Iterable

import msgspec

from reservations.core.wire import DeviceInfo, HealthProblem, HostSettings


def left_alone(settings: HostSettings, devices: Iterable[DeviceInfo]) -> tuple[DeviceInfo, ...]:
    """The managed devices that drive a display, and that nobody has forced."""
    managed, forced = frozenset(settings.managed), frozenset(settings.forced_displays)
    return tuple(one for one in devices if one.display and one.uuid in managed - forced)


def without(settings: HostSettings, devices: Iterable[DeviceInfo]) -> HostSettings:
    """The same settings, managing none of these."""
    spared = {one.uuid for one in devices}
    if not spared:
        return settings
    managed = tuple(uuid for uuid in settings.managed if uuid not in spared)
    return msgspec.structs.replace(settings, managed=managed)


def problems(displays: Iterable[DeviceInfo]) -> list[HealthProblem]:
    return [
        HealthProblem(
            code="display",
            device=one.uuid,
            text=f"{one.model} (GPU {one.index}) drives a display: bookings of it are not enforced, "
            "until an operator forces it",
        )
        for one in displays
    ]
