"""The vendor itself: what is listed, what is read, and what somebody should know."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from reservations.core.wire import MAX_TEXT, DeviceInfo, Health, HealthProblem, Sample
from workers.host.clock import HostClock
from workers.host.vendors.base import VendorError
from workers.host.vendors.nvidia import figures, lists
from workers.host.vendors.nvidia.capabilities import Capabilities
from workers.host.vendors.nvidia.faults import Fault, reach
from workers.host.vendors.nvidia.figures import Sensors
from workers.host.vendors.nvidia.inventory import MIG_ENABLED, VENDOR, list_devices
from workers.host.vendors.nvidia.library import (
    INVALID_ARGUMENT,
    NOT_FOUND,
    UNKNOWN,
    Device,
    DeviceGoneError,
    DeviceSilentError,
    Library,
    NvmlError,
)
from workers.host.vendors.nvidia.sensors import SensorReader
from workers.host.vendors.nvidia.xids import XidWatch

logger = logging.getLogger(__name__)
T = TypeVar("T")

# Answers to "give me the device of this UUID" that mean that there is none.
_NOT_THERE = frozenset({INVALID_ARGUMENT, NOT_FOUND, UNKNOWN})


@dataclass(frozen=True, slots=True)
class _Known:
    """A handle is good until NVML is started again, or its device is gone."""

    uuid: str
    handle: Any
    divided: bool
    is_part: bool


class NvidiaVendor:
    """All NVIDIA devices of this machine. NVML starts with the first question, after any fork."""

    name: ClassVar[str] = VENDOR
    lists_processes: ClassVar[bool] = True
    trusts_uids: ClassVar[bool] = False

    def __init__(
        self, clock: HostClock, *, proc: Path = Path("/proc"), dev: Path = Path("/dev")
    ) -> None:
        self._clock = clock
        self._capabilities = Capabilities(proc, dev)
        self._library = Library()
        self._xids = XidWatch(self._library, clock)
        self._lock = threading.Lock()
        self._known: dict[str, _Known] = {}
        self._generation = 0
        self._sensors: dict[str, SensorReader] = {}
        self._unnamed: dict[int, str] = {}
        self._faults: dict[str, str] = {}

    def devices(self) -> tuple[DeviceInfo, ...]:
        with self._library.session():
            listing = list_devices(self._library, self._capabilities)
        self._unnamed = dict(listing.unnamed)
        # Those that are not in it are looked up anew, by UUID, and are not found.
        with self._lock:
            self._generation = self._library.generation
            known = [
                _Known(one.info.uuid, one.handle, one.info.divided, one.info.kind == "mig")
                for one in listing.devices
            ]
            self._known = {one.uuid: one for one in known}
        self._xids.follow({one.uuid: one.handle for one in known if not one.is_part})
        return tuple(one.info for one in listing.devices)

    def sample(self, uuid: str) -> Sample:
        try:
            sample = self._in_session(uuid, self._read)
        except DeviceGoneError as error:
            return self._failed(uuid, error, "lost")
        except DeviceSilentError as error:
            return self._failed(uuid, error, "unknown")
        except VendorError as error:
            logger.debug("device=%s is unreadable: %s", uuid, error)
            return Sample(uuid=uuid, at=self._clock.now(), health="unknown")
        self._faults.pop(uuid, None)
        return sample

    def problems(self) -> list[HealthProblem]:
        """What somebody should know of the devices. Asks the driver nothing."""
        found = [
            HealthProblem(
                code="device_unnamed",
                text=f"The driver counts a GPU at index {index} that it cannot name: {why}"[
                    :MAX_TEXT
                ],
            )
            for index, why in sorted(self._unnamed.items())
        ]
        found += [
            HealthProblem(
                code="device_fault", device=uuid, text=f"It cannot be read: {why}"[:MAX_TEXT]
            )
            for uuid, why in sorted(self._faults.copy().items())
        ]
        found += [
            HealthProblem(
                code="sensors_hang",
                device=uuid,
                text="The driver has not answered for temperature, power and fan; "
                "who uses the device is read all the same.",
            )
            for uuid, one in sorted(self._sensors.copy().items())
            if one.hangs
        ]
        return [*found, *self._xids.problems()]

    def close(self) -> None:
        """Lets go of the driver once nobody is inside a call; not to be called as the process ends."""
        with self._lock:
            self._known.clear()
        self._library.close()

    def _failed(self, uuid: str, error: Exception, health: Health) -> Sample:
        logger.debug("device=%s is %s: %s", uuid, health, error)
        with self._lock:
            self._known.pop(uuid, None)
        self._faults[uuid] = str(error)
        return Sample(uuid=uuid, at=self._clock.now(), health=health)

    def _in_session(self, uuid: str, work: Callable[[Device, _Known], T]) -> T:
        with self._library.session():
            known = self._look_up(uuid)
            return work(Device(self._library, known.handle), known)

    def _look_up(self, uuid: str) -> _Known:
        """The device's handle.

        Raises:
            DeviceGoneError, DeviceSilentError, VendorError
        """
        with self._lock:
            if self._generation != self._library.generation:
                self._known.clear()
                self._generation = self._library.generation
            if found := self._known.get(uuid):
                return found
        try:
            handle = self._library.call("nvmlDeviceGetHandleByUUID", uuid)
        except NvmlError as error:
            gone = error.code in _NOT_THERE or reach(error.code) is Fault.GONE
            raise (DeviceGoneError if gone else DeviceSilentError)(str(error)) from error
        device = Device(self._library, handle)
        is_part = bool(device.ask("nvmlDeviceIsMigDeviceHandle"))
        mode = None if is_part else device.ask("nvmlDeviceGetMigMode")
        known = _Known(uuid, handle, bool(mode and mode[0] == MIG_ENABLED), is_part)
        with self._lock:
            self._known[uuid] = known
        return known

    def _read(self, device: Device, known: _Known) -> Sample:
        """What rights depend on is read here; the sensors meanwhile, in their own thread."""
        sensors = None if known.is_part else self._sensors_of(known.uuid)
        asked = sensors is not None and sensors.ask()
        memory = figures.memory(device)
        busy = None if known.is_part else figures.utilization_percent(device)
        # Whoever is on a divided device is on one of its parts, and listed there.
        processes = None if known.divided else lists.processes(device)
        device.settle()
        felt = sensors.answer(asked=asked) if sensors else Sensors()
        return Sample(
            uuid=known.uuid,
            at=self._clock.now(),
            utilization_percent=busy,
            memory_used_bytes=memory.used,
            memory_reserved_bytes=memory.reserved,
            memory_total_bytes=memory.total,
            temperature_c=felt.temperature_c,
            power_w=felt.power_w,
            power_limit_w=felt.slow.power_limit_w,
            fan_percent=felt.slow.fan_percent,
            sm_clock_mhz=felt.slow.sm_clock_mhz,
            throttle=felt.slow.throttle,
            ecc_uncorrected=felt.slow.ecc_uncorrected,
            processes=processes,
        )

    def _sensors_of(self, uuid: str) -> SensorReader:
        with self._lock:
            if uuid not in self._sensors:
                self._sensors[uuid] = SensorReader(
                    uuid,
                    self._clock,
                    lambda read: self._in_session(uuid, lambda device, _: read(device)),
                )
            return self._sensors[uuid]
