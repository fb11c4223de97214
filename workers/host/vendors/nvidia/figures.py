"""The figures of a device, each in its unit and None where it cannot be had or cannot be true."""

from dataclasses import dataclass, field

from workers.host.vendors.nvidia.library import Device, pynvml
from workers.host.vendors.nvidia.plausible import MAX_MEMORY_BYTES, count, within

# Counted over the life of a card; real ones are small.
MAX_ECC_ERRORS = 2**48
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
_MAX_THROTTLE_BITS = 2**32


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes. Old drivers count their own reserve as used, and do not say how much it is."""

    used: int | None = None
    reserved: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Slow:
    """What changes rarely, and is not worth a call every second."""

    power_limit_w: float | None = None
    fan_percent: float | None = None
    sm_clock_mhz: float | None = None
    throttle: str | None = None
    ecc_uncorrected: int | None = None


@dataclass(frozen=True, slots=True)
class Sensors:
    """What nobody's rights depend on."""

    temperature_c: float | None = None
    power_w: float | None = None
    slow: Slow = field(default_factory=Slow)


def memory(device: Device) -> Memory:
    info = device.ask("nvmlDeviceGetMemoryInfo", version=pynvml.nvmlMemory_v2)
    reserved = info.reserved if info else None
    info = info or device.ask("nvmlDeviceGetMemoryInfo")
    if info is None or not 0 < info.total < MAX_MEMORY_BYTES:
        return Memory()
    beyond = info.total + 1
    return Memory(count(info.used, limit=beyond), count(reserved, limit=beyond), info.total)


def utilization_percent(device: Device) -> float | None:
    """The share of time in which anything computed. Unknown on a divided device and on its parts."""
    rates = device.ask("nvmlDeviceGetUtilizationRates")
    return within(rates.gpu, 0, 100) if rates else None


def temperature_c(device: Device) -> float | None:
    return within(device.ask("nvmlDeviceGetTemperature", pynvml.NVML_TEMPERATURE_GPU), -50, 200)


def power_w(device: Device) -> float | None:
    return _watts(device.ask("nvmlDeviceGetPowerUsage"))


def slow(device: Device) -> Slow:
    return Slow(
        power_limit_w=_watts(device.ask("nvmlDeviceGetEnforcedPowerLimit")),
        fan_percent=within(device.ask("nvmlDeviceGetFanSpeed"), 0, 200),
        sm_clock_mhz=within(device.ask("nvmlDeviceGetClockInfo", pynvml.NVML_CLOCK_SM), 0, 20_000),
        throttle=_throttle(device),
        ecc_uncorrected=count(
            device.ask(
                "nvmlDeviceGetTotalEccErrors",
                pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED,
                pynvml.NVML_VOLATILE_ECC,
            ),
            limit=MAX_ECC_ERRORS,
        ),
    )


def _throttle(device: Device) -> str | None:
    bits = count(device.first(*_THROTTLE_CALLS), limit=_MAX_THROTTLE_BITS)
    if bits is None:
        return None
    return ", ".join(word for bit, word in _THROTTLE_WORDS if bits & bit)


def _watts(milliwatts: int | None) -> float | None:
    return within(milliwatts / 1000, 0, 10_000) if milliwatts is not None else None
