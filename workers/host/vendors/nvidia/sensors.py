"""Temperature, power and slow figures of one device, read in a thread of their own.

A call of theirs that hangs must not keep back who is on the device: enforcement goes by that.
"""

import logging
import time
from collections.abc import Callable

from workers.host.clock import HostClock
from workers.host.question import Question
from workers.host.vendors.base import VendorError
from workers.host.vendors.nvidia import figures
from workers.host.vendors.nvidia.figures import Sensors, Slow
from workers.host.vendors.nvidia.library import Device, DeviceGoneError, DeviceSilentError

logger = logging.getLogger(__name__)

# How long a sample waits for them. A healthy driver takes a few milliseconds.
WAIT_S = 0.1
# Older readings than this are not shown: three looks of 5 s.
KEEP_S = 15.0
SLOW_EVERY_S = 10.0
# A call that is under way for longer is said to hang.
HANGS_AFTER_S = 2.0


class SensorReader:
    """For one thread, the one that reads the device's other figures.

    ``within_session`` calls what it is given with the device, in a session of the library.
    """

    def __init__(
        self,
        uuid: str,
        clock: HostClock,
        within_session: Callable[[Callable[[Device], Sensors]], Sensors],
    ) -> None:
        self._uuid = uuid
        self._clock = clock
        self._within_session = within_session
        self._slow = Slow()
        self._slow_at: float | None = None
        self._read_at = 0.0
        self._question = Question(self._put, name=f"sensors {uuid}")

    @property
    def hangs(self) -> bool:
        return self._question.hangs(HANGS_AFTER_S)

    def ask(self) -> bool:
        """Begins to read; False if the last call still has not come back."""
        return self._question.ask()

    def answer(self, *, asked: bool) -> Sensors:
        """What was read since `ask`, else what was read not long ago, else nothing."""
        found = self._question.answer(time.monotonic() + WAIT_S) if asked else None
        if found is not None:
            return found
        young = self._clock.boottime_s() - self._read_at <= KEEP_S
        return (self._question.newest if young else None) or Sensors()

    def _put(self) -> Sensors:
        try:
            found = self._within_session(self._read)
        except (DeviceGoneError, DeviceSilentError, VendorError) as error:
            logger.debug("sensors of device=%s cannot be read: %s", self._uuid, error)
            return Sensors()
        self._read_at = self._clock.boottime_s()
        return found

    def _read(self, device: Device) -> Sensors:
        now_s = self._clock.boottime_s()
        if self._slow_at is None or now_s - self._slow_at >= SLOW_EVERY_S:
            self._slow, self._slow_at = figures.slow(device), now_s
        return Sensors(
            temperature_c=figures.temperature_c(device),
            power_w=figures.power_w(device),
            slow=self._slow,
        )
