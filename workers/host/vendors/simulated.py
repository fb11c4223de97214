"""Simulated devices with real processes as jobs: for laptops, demos and tests.

Says "simulated" as its vendor and in every model name. Figures follow from the state directory, the
time, and the heat that this reader has seen build up.
"""

import math
import threading
from datetime import datetime
from typing import ClassVar

from reservations.core.wire import DeviceInfo, HealthProblem, ProcessUse, Sample
from workers.host.clock import HostClock
from workers.host.simulation import (
    GIB,
    Job,
    Load,
    SimulatedDevice,
    SimulatedHost,
    SimulationError,
    load,
)
from workers.host.vendors.base import VendorError

# How fast a cooler follows the load: after this long, 63 % of the way.
HEAT_TIME_CONSTANT_S = 45.0
# Samples taken within this long are of one look.
SAME_LOOK_S = 0.02


class SimulatedVendor:
    """The devices of one simulated host."""

    name: ClassVar[str] = "simulated"
    lists_processes: ClassVar[bool] = True
    trusts_uids: ClassVar[bool] = True

    def __init__(self, host: SimulatedHost, clock: HostClock) -> None:
        self._host = host
        self._clock = clock
        self._heat: dict[str, tuple[float, datetime]] = {}
        self._jobs_lock = threading.Lock()
        self._jobs: list[Job] = []
        self._jobs_read_s = -math.inf

    def devices(self) -> tuple[DeviceInfo, ...]:
        try:
            found = self._host.devices()
        except SimulationError as error:
            raise VendorError(str(error)) from error
        return tuple(
            DeviceInfo(
                uuid=device.uuid,
                vendor=self.name,
                index=device.index,
                model=device.model,
                memory_bytes=device.memory_bytes,
                minor=device.minor,
                bus_id=f"00000000:{device.minor + 1:02X}:00.0",
            )
            for device in found
        )

    def sample(self, uuid: str) -> Sample:
        now = self._clock.now()
        device = self._find(uuid)
        if device is None:
            return Sample(uuid=uuid, at=now, health="lost")
        loads = self._loads(device)
        utilization = min(100.0, sum(one.utilization_percent for _, one in loads))
        used = min(device.memory_bytes, sum(one.memory_bytes for _, one in loads))
        power = _power_w(device, utilization)
        temperature = self._temperature_c(device, power, now)
        return Sample(
            uuid=uuid,
            at=now,
            utilization_percent=round(utilization, 1),
            memory_used_bytes=used,
            memory_reserved_bytes=GIB // 2,
            memory_total_bytes=device.memory_bytes,
            temperature_c=round(temperature, 1),
            power_w=round(power, 1),
            power_limit_w=device.power_limit_w,
            fan_percent=min(100.0, round(30 + 2 * max(0.0, temperature - 45))),
            sm_clock_mhz=1755.0 if utilization else 210.0,
            ecc_uncorrected=0,
            processes=tuple(process for process, _ in loads),
        )

    def problems(self) -> list[HealthProblem]:
        return []

    def close(self) -> None:
        self._heat.clear()
        self._jobs_read_s = -math.inf

    def _find(self, uuid: str) -> SimulatedDevice | None:
        return next((device for device in self._host.devices() if device.uuid == uuid), None)

    def _loads(self, device: SimulatedDevice) -> list[tuple[ProcessUse, Load]]:
        boottime_s = self._clock.boottime_s()
        loads = []
        for job in self._present_jobs():
            if job.device == device.uuid:
                present = load(job, age_s=job.age_s(boottime_s), memory_bytes=device.memory_bytes)
                process = ProcessUse(
                    pid=job.pid,
                    uid=job.uid,
                    unix_name=job.unix_name,
                    memory_bytes=present.memory_bytes,
                )
                loads.append((process, present))
        return loads

    def _present_jobs(self) -> list[Job]:
        """One reading of the folder serves all devices that are sampled together."""
        with self._jobs_lock:
            now_s = self._clock.boottime_s()
            if now_s - self._jobs_read_s > SAME_LOOK_S:
                self._jobs, self._jobs_read_s = self._host.jobs(), now_s
            return self._jobs

    def _temperature_c(self, device: SimulatedDevice, power_w: float, now: datetime) -> float:
        """First-order lag towards what the power would settle at; inner slots are warmer."""
        goal = 30 + 48 * power_w / device.power_limit_w + 1.5 * (device.index % 4)
        last, at = self._heat.get(device.uuid, (goal, now))
        passed_s = max(0.0, (now - at).total_seconds())
        present = goal + (last - goal) * math.exp(-passed_s / HEAT_TIME_CONSTANT_S)
        self._heat[device.uuid] = (present, now)
        return present


def _power_w(device: SimulatedDevice, utilization_percent: float) -> float:
    idle = 0.12 * device.power_limit_w
    if not utilization_percent:
        return idle
    return float(idle + 0.93 * (device.power_limit_w - idle) * (utilization_percent / 100) ** 0.8)
