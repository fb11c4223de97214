"""Prints, as JSON, what nvitop reads of every device: it must not meet our own library in one process."""

import json
import sys
from collections.abc import Iterator
from typing import Any

from nvitop import Device


def every() -> Iterator[Device]:
    for device in Device.all():
        yield device
        if device.is_mig_mode_enabled():
            yield from device.mig_devices()


def reading(one: Device) -> dict[str, Any]:
    return {
        "uuid": one.uuid(),
        "name": one.name(),
        "memory_used": one.memory_used(),
        "memory_total": one.memory_total(),
        "utilization": one.gpu_utilization(),
        "temperature": one.temperature(),
        "power": one.power_usage(),
        "processes": {pid: process.gpu_memory() for pid, process in one.processes().items()},
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps([reading(one) for one in every()]))
