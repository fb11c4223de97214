"""What people type and read at a host's terminal: durations, devices, instants."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from reservations.core.wire import DeviceInfo

LONGEST = timedelta(days=366)
_DURATION = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?", re.ASCII)


class WrongCall(RuntimeError):
    """The command cannot be done as it was typed; the text says what is wrong and what to type."""


def duration(text: str) -> timedelta:
    """90m, 4h, 1d12h; 0 is none at all.

    Raises:
        ValueError: it is nothing of the kind, or longer than a year.
    """
    found = _DURATION.fullmatch(text)
    if text == "0":
        return timedelta(0)
    if not text or found is None:
        raise ValueError(f"{text!r}: expected a duration such as 90m, 4h or 1d12h")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    wanted = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if wanted > LONGEST:
        raise ValueError(f"{text!r}: longer than a year")
    return wanted


def is_number(text: str) -> bool:
    """Of plain figures only: there are others, and not all of them can be reckoned with."""
    return text.isascii() and text.isdigit()


def find_device(devices: Sequence[DeviceInfo], wanted: str) -> DeviceInfo:
    """The device with this index, or whose UUID begins so; ``GPU-`` may be left out.

    Raises:
        WrongCall: there is none, or more than one.
    """
    if is_number(wanted) and len(wanted) <= 3:
        found = [one for one in devices if one.index == int(wanted) and one.parent is None]
    else:
        start = wanted.lower()
        uuids = [(one, one.uuid.lower()) for one in devices]
        found = [one for one, uuid in uuids if start in {uuid, uuid.partition("-")[2]}] or [
            one
            for one, uuid in uuids
            if uuid.startswith(start) or uuid.partition("-")[2].startswith(start)
        ]
    if len(found) == 1:
        return found[0]
    problem = (
        f"{len(found)} devices begin with {wanted}" if found else f"there is no device {wanted}"
    )
    known = "".join(f"\n  {called(one)}" for one in devices) or " none"
    raise WrongCall(f"{problem}; the devices of this host:{known}")


def called(device: DeviceInfo) -> str:
    return f"{device.index} {device.model} {device.uuid}"


def instant(at: datetime) -> str:
    """In the time of this machine."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S %Z}"
