"""The devices of this host, remembered while their driver cannot name them.

A device that vanishes stays known until the agent starts anew: its grants, its gate and its loss are
still to be shown. What was known is used at a start too, but only in the same boot: minors may change.
"""

import logging
from pathlib import Path

import msgspec

from reservations.core.wire import DeviceInfo, Shape
from workers.host.clock import HostClock
from workers.host.files import replace_file
from workers.host.vendors.base import Vendor, VendorError

logger = logging.getLogger(__name__)


class _Seen(Shape, frozen=True, kw_only=True):
    boot_id: str
    devices: tuple[DeviceInfo, ...]


class Fleet:
    """`refresh` may block as long as the driver does; `devices` never does."""

    def __init__(self, vendor: Vendor, clock: HostClock, path: Path) -> None:
        self._vendor = vendor
        self._clock = clock
        self._path = path
        self.devices: tuple[DeviceInfo, ...] = remembered(path, clock.boot_id)
        self.problem = ""
        self._yielding = False
        self._closed = False

    def let_go(self, yielding: bool) -> bool:
        """From the next `refresh` on, whether the vendor is left closed; True if that is new."""
        changed = yielding != self._yielding
        self._yielding = yielding
        return changed

    @property
    def has_let_go(self) -> bool:
        """Whether the vendor is as closed as was asked for."""
        return self._closed or not self._yielding

    def refresh(self) -> bool:
        """Asks the vendor again; True if anything is new or different."""
        if self._yielding:
            # Every time: a reading that was under way may have opened it again.
            self._vendor.close()
            first, self._closed = not self._closed, True
            return first
        self._closed = False
        try:
            found = self._vendor.devices()
        except VendorError as error:
            if str(error) != self.problem:
                logger.warning("devices cannot be listed: %s", error)
            self.problem = str(error)
            return False
        self.problem = ""
        present = {device.uuid for device in found}
        gone = tuple(device for device in self.devices if device.uuid not in present)
        devices = (*found, *gone)
        if devices == self.devices:
            return False
        self.devices = devices
        seen = _Seen(boot_id=self._clock.boot_id, devices=devices)
        try:
            replace_file(self._path, msgspec.json.encode(seen))
        except OSError:
            # Worth something only at a start while the driver does not answer.
            logger.exception("devices cannot be written down")
        return True


def remembered(path: Path, boot_id: str) -> tuple[DeviceInfo, ...]:
    """What a fleet of the same boot has seen."""
    try:
        seen = msgspec.json.decode(path.read_bytes(), type=_Seen)
    except (OSError, msgspec.DecodeError):
        return ()
    return seen.devices if seen.boot_id == boot_id else ()
