"""NVIDIA devices through NVML. The only file that imports pynvml.

Every field is asked for on its own: what one driver does not know never hides what it does. A failed
call is one of three things: the figure is *absent* (None), the device is *gone* (health ``lost``), or
the *library* cannot be used (health ``unknown``, and NVML is started again, less and less often).
"""

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import pynvml as _typed

from reservations.core.wire import DeviceInfo, ProcessUse, Sample
from workers.host.clock import HostClock
from workers.host.vendors.base import VendorError

# pynvml has no annotations.
pynvml: Any = _typed
logger = logging.getLogger(__name__)

_GONE = {
    pynvml.NVML_ERROR_GPU_IS_LOST,
    pynvml.NVML_ERROR_RESET_REQUIRED,
    pynvml.NVML_ERROR_GPU_NOT_FOUND,
    pynvml.NVML_ERROR_UNKNOWN,
}
_LIBRARY = {
    pynvml.NVML_ERROR_UNINITIALIZED,
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED,
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND,
}
# linux/threads.h: no pid is ever this large. Some drivers list garbage where the struct has changed.
PID_LIMIT = 2**22
MAX_MEMORY_BYTES = 2**44
FIRST_RETRY_S, LAST_RETRY_S = 1.0, 60.0

# Newest first: a driver older than 510 lacks v3.
_COMPUTE_LISTS = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
)
_GRAPHICS_LISTS = (
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
)
_MPS_LISTS = (
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
)
_THROTTLE_CALLS = (
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetCurrentClocksThrottleReasons",
)
# Bits of nvmlClocksEventReason*; idle and chosen clocks are no throttling.
_THROTTLE_WORDS = (
    (pynvml.nvmlClocksThrottleReasonSwPowerCap, "power cap"),
    (pynvml.nvmlClocksThrottleReasonHwSlowdown, "hardware slowdown"),
    (pynvml.nvmlClocksThrottleReasonSwThermalSlowdown, "thermal"),
    (pynvml.nvmlClocksThrottleReasonHwThermalSlowdown, "thermal (hardware)"),
    (pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown, "power brake"),
)


class _Gone(RuntimeError):
    """The device does not answer any more."""


class NvidiaVendor:
    """All NVIDIA devices of this machine. NVML starts with the first question, after any fork."""

    name: ClassVar[str] = "nvidia"
    lists_processes: ClassVar[bool] = True
    trusts_uids: ClassVar[bool] = False

    def __init__(self, clock: HostClock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._handles: dict[str, Any] = {}
        self._started = False
        self._retry_s = FIRST_RETRY_S
        self._retry_at = 0.0
        self._trouble = ""

    def devices(self) -> tuple[DeviceInfo, ...]:
        self._start()
        try:
            count = pynvml.nvmlDeviceGetCount()
        except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
            self._stumble(error)
            raise VendorError(f"NVML: {error}") from error
        found = [info for index in range(count) if (info := self._describe(index))]
        return tuple(found)

    def sample(self, uuid: str) -> Sample:
        now = self._clock.now()
        try:
            self._start()
            return self._read(uuid, self._handle(uuid))
        except _Gone as error:
            logger.debug("device=%s is gone: %s", uuid, error)
            self._handles.pop(uuid, None)
            return Sample(uuid=uuid, at=now, health="lost")
        except VendorError as error:
            logger.debug("device=%s is unreadable: %s", uuid, error)
            return Sample(uuid=uuid, at=now, health="unknown")

    def close(self) -> None:
        """Forgets the handles, and no more.

        A thread may still be inside a call, and shutting NVML down under it crashes the process.
        """
        self._handles.clear()
        self._started = False

    def _start(self) -> None:
        with self._lock:
            if self._started:
                return
            if time.monotonic() < self._retry_at:
                raise VendorError(self._trouble)
            try:
                pynvml.nvmlInit()
            except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError) as error:
                self._back_off(f"NVML cannot start: {error}")
                raise VendorError(self._trouble) from error
            self._started = True
            self._retry_s = FIRST_RETRY_S

    def _stumble(self, error: Exception) -> None:
        """Starts NVML anew at a later question if this error says that the library is unusable."""
        if isinstance(error, pynvml.NVMLError) and error.value in _LIBRARY:
            with self._lock:
                self._started = False
                self._handles.clear()
                self._back_off(f"NVML: {error}")

    def _back_off(self, trouble: str) -> None:
        self._trouble = trouble
        self._retry_at = time.monotonic() + self._retry_s
        self._retry_s = min(self._retry_s * 2, LAST_RETRY_S)

    def _describe(self, index: int) -> DeviceInfo | None:
        """None for a device that NVML counts but cannot name; the others are listed all the same."""
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
        except (pynvml.NVMLError, UnicodeDecodeError) as error:
            logger.warning("NVML names no device at index %d: %s", index, error)
            return None
        try:
            name = self._ask(handle, "nvmlDeviceGetName")
            bus = self._ask(handle, "nvmlDeviceGetPciInfo")
            minor = self._ask(handle, "nvmlDeviceGetMinorNumber")
            _, _, total = self._memory(handle)
        except (_Gone, VendorError) as error:
            logger.warning("device=%s cannot be described: %s", uuid, error)
            return None
        self._handles[uuid] = handle
        return DeviceInfo(
            uuid=uuid,
            vendor=self.name,
            index=index,
            model=name or "NVIDIA GPU",
            memory_bytes=total,
            minor=minor,
            bus_id=_text(bus.busId) if bus else "",
            node_paths=(f"/dev/nvidia{minor}",) if minor is not None else (),
        )

    def _handle(self, uuid: str) -> Any:
        if uuid not in self._handles:
            try:
                self._handles[uuid] = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            except pynvml.NVMLError as error:
                self._stumble(error)
                if error.value in _LIBRARY:
                    raise VendorError(str(error)) from error
                raise _Gone(str(error)) from error
        return self._handles[uuid]

    def _read(self, uuid: str, handle: Any) -> Sample:
        used, reserved, total = self._memory(handle)
        rates = self._ask(handle, "nvmlDeviceGetUtilizationRates")
        power = self._ask(handle, "nvmlDeviceGetPowerUsage")
        limit = self._ask(handle, "nvmlDeviceGetEnforcedPowerLimit")
        utilization = float(rates.gpu) if rates else None
        return Sample(
            uuid=uuid,
            at=self._clock.now(),
            utilization_percent=_within(utilization, 0, 100),
            memory_used_bytes=used,
            memory_reserved_bytes=reserved,
            memory_total_bytes=total,
            temperature_c=_within(self._ask(handle, "nvmlDeviceGetTemperature", 0), -50, 200),
            # NVML counts milliwatts.
            power_w=_within(power / 1000 if power is not None else None, 0, 10_000),
            power_limit_w=_within(limit / 1000 if limit is not None else None, 0, 10_000),
            fan_percent=_within(self._ask(handle, "nvmlDeviceGetFanSpeed"), 0, 200),
            sm_clock_mhz=_within(self._ask(handle, "nvmlDeviceGetClockInfo", 1), 0, 20_000),
            throttle=self._throttle(handle),
            ecc_uncorrected=self._ask(handle, "nvmlDeviceGetTotalEccErrors", 1, 0),
            processes=self._processes(handle),
        )

    def _memory(self, handle: Any) -> tuple[int | None, int | None, int | None]:
        """Bytes used, reserved by the driver, and there. Old drivers count the reserve as used."""
        info = self._ask(handle, "nvmlDeviceGetMemoryInfo", version=pynvml.nvmlMemory_v2)
        reserved = info.reserved if info else None
        info = info or self._ask(handle, "nvmlDeviceGetMemoryInfo")
        if info is None or not 0 < info.total < MAX_MEMORY_BYTES or info.used > info.total:
            return None, None, None
        return info.used, reserved, info.total

    def _throttle(self, handle: Any) -> str | None:
        bits = self._first(handle, _THROTTLE_CALLS)
        if bits is None:
            return None
        return ", ".join(word for bit, word in _THROTTLE_WORDS if bits & bit)

    def _processes(self, handle: Any) -> tuple[ProcessUse, ...] | None:
        """Everybody on the device, or None: a list that is unreadable or garbage is not "nobody"."""
        compute = self._first(handle, _COMPUTE_LISTS)
        if compute is None:
            return None
        mps = self._first(handle, _MPS_LISTS) or ()
        graphics = self._first(handle, _GRAPHICS_LISTS) or ()
        found: dict[int, ProcessUse] = {}
        for entries, graphics_only in ((graphics, True), (mps, False), (compute, False)):
            for entry in entries:
                if not 0 < entry.pid < PID_LIMIT:
                    logger.warning("NVML lists pid %d; the whole list is not believed", entry.pid)
                    return None
                found[entry.pid] = ProcessUse(
                    pid=entry.pid,
                    memory_bytes=_plausible(entry.usedGpuMemory),
                    graphics_only=graphics_only,
                )
        return tuple(found.values())

    def _first(self, handle: Any, names: tuple[str, ...]) -> Any:
        """What the first call answers that this driver knows."""
        answers = (self._ask(handle, name) for name in names)
        return next((answer for answer in answers if answer is not None), None)

    def _ask(self, handle: Any, name: str, *arguments: Any, **options: Any) -> Any:
        """The call's answer, or None where this device or driver does not have the figure."""
        call: Callable[..., Any] = getattr(pynvml, name)
        try:
            return call(handle, *arguments, **options)
        except (pynvml.NVMLLibraryMismatchError, UnicodeDecodeError):
            return None
        except pynvml.NVMLError as error:
            if error.value in _GONE:
                raise _Gone(f"{name}: {error}") from error
            if error.value in _LIBRARY:
                self._stumble(error)
                raise VendorError(f"{name}: {error}") from error
            return None


def _within(value: float | None, low: float, high: float) -> float | None:
    """The figure, unless it cannot be one: drivers answer sentinels such as 2**32 - 1."""
    return float(value) if value is not None and low <= value <= high else None


def _plausible(used: int | None) -> int | None:
    return used if used is not None and 0 <= used < MAX_MEMORY_BYTES else None


def _text(value: bytes | str) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
