"""Which devices there are: whole GPUs, and the parts of those that are divided (MIG)."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from reservations.core.wire import DeviceInfo
from workers.host.vendors.base import VendorError
from workers.host.vendors.nvidia import figures
from workers.host.vendors.nvidia.capabilities import Capabilities, Instance
from workers.host.vendors.nvidia.library import (
    NOT_FOUND,
    Device,
    DeviceGoneError,
    DeviceSilentError,
    Library,
    NvmlError,
)
from workers.host.vendors.nvidia.plausible import count

logger = logging.getLogger(__name__)

VENDOR = "nvidia"
MIG_ENABLED = 1
_MAX_MINOR = 2**20
# A part is shown as 100 times its GPU's place, counted from 1, and its own: 203 is part 3 of the second.
PARTS_PER_GPU = 100
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Found:
    """A device, its handle, and which of the GPU's instances it is if it is a part."""

    info: DeviceInfo
    handle: Any
    instance: Instance | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """``unnamed`` says, by index, why a device that the driver counts cannot be named."""

    devices: tuple[Found, ...]
    unnamed: Mapping[int, str]


def list_devices(library: Library, capabilities: Capabilities) -> Listing:
    """To be called within a session.

    Raises:
        VendorError: none can be named now.
    """
    try:
        number = library.call("nvmlDeviceGetCount")
    except NvmlError as error:
        raise VendorError(f"NVML cannot count devices: {error}") from error
    devices: list[Found] = []
    unnamed: dict[int, str] = {}
    for index in range(number):
        try:
            whole = _whole(library, index)
            devices += (whole, *_parts(library, whole))
        except (NvmlError, DeviceGoneError, DeviceSilentError) as error:
            logger.warning("NVML names no device at index %d: %s", index, error)
            unnamed[index] = str(error)
    return Listing(devices=tuple(_with_nodes(devices, capabilities)), unnamed=unnamed)


def _whole(library: Library, index: int) -> Found:
    handle = library.call("nvmlDeviceGetHandleByIndex", index)
    uuid = library.call("nvmlDeviceGetUUID", handle)
    device = Device(library, handle)
    bus = device.ask("nvmlDeviceGetPciInfo")
    minor = count(device.ask("nvmlDeviceGetMinorNumber"), limit=_MAX_MINOR)
    display = device.ask("nvmlDeviceGetDisplayActive")
    mig = device.ask("nvmlDeviceGetMigMode")
    info = DeviceInfo(
        uuid=uuid,
        vendor=VENDOR,
        index=index,
        model=(device.ask("nvmlDeviceGetName") or "NVIDIA GPU")[:_MAX_NAME],
        memory_bytes=figures.memory(device).total,
        minor=minor,
        bus_id=_text(bus.busId) if bus else "",
        node_paths=(f"/dev/nvidia{minor}",) if minor is not None else (),
        display=bool(display) if display is not None else None,
        divided=bool(mig and mig[0] == MIG_ENABLED),
    )
    device.settle()
    return Found(info=info, handle=handle)


def _parts(library: Library, whole: Found) -> Iterator[Found]:
    if not whole.info.divided:
        return
    for slot in range(Device(library, whole.handle).ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
        try:
            handle = library.call("nvmlDeviceGetMigDeviceHandleByIndex", whole.handle, slot)
            yield _part(library, whole, slot=slot, handle=handle)
        except (NvmlError, DeviceGoneError) as error:
            # A hole is not the end: parts keep their slots when others go.
            if not (isinstance(error, NvmlError) and error.code == NOT_FOUND):
                logger.warning("part %d of device=%s: %s", slot, whole.info.uuid, error)


def _part(library: Library, whole: Found, *, slot: int, handle: Any) -> Found:
    device = Device(library, handle)
    name = device.ask("nvmlDeviceGetName") or whole.info.model
    # Old drivers call a part by the name of the whole, which nobody may take it for.
    model = name if "MIG" in name else f"{name} MIG"
    gi = device.ask("nvmlDeviceGetGpuInstanceId")
    ci = device.ask("nvmlDeviceGetComputeInstanceId")
    known = whole.info.minor is not None and gi is not None and ci is not None
    info = DeviceInfo(
        uuid=library.call("nvmlDeviceGetUUID", handle),
        vendor=VENDOR,
        kind="mig",
        index=PARTS_PER_GPU * (whole.info.index + 1) + slot,
        model=model[:_MAX_NAME],
        memory_bytes=figures.memory(device).total,
        bus_id=whole.info.bus_id,
        parent=whole.info.uuid,
        # Parts only compute.
        display=False,
    )
    instance = Instance(gpu=whole.info.minor or 0, gi=gi, ci=ci) if known else None
    return Found(info=info, handle=handle, instance=instance)


def _with_nodes(devices: list[Found], capabilities: Capabilities) -> Iterator[Found]:
    nodes = capabilities.nodes_of(one.instance for one in devices if one.instance)
    for one in sorted(devices, key=lambda one: one.info.index):
        if one.instance is None:
            yield one
            continue
        info = msgspec.structs.replace(one.info, node_paths=nodes[one.instance])
        yield Found(info=info, handle=one.handle, instance=one.instance)


def _text(value: bytes | str) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else value
