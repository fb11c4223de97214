"""Who is on a device: the driver's lists of computing, drawing and MPS processes as one.

The entry of these lists has changed without a new version: some drivers write 32 bytes or 16 where the
header says 24. What was written is measured, so a list is read rightly or not at all.
"""

import ctypes
import logging
import struct
from collections.abc import Iterable

from reservations.core.wire import ProcessUse
from workers.host.vendors.nvidia.library import (
    FUNCTION_NOT_FOUND,
    INSUFFICIENT_SIZE,
    NOT_FOUND,
    NOT_SUPPORTED,
    SUCCESS,
    Device,
)
from workers.host.vendors.nvidia.plausible import MAX_MEMORY_BYTES, count

logger = logging.getLogger(__name__)

# linux/threads.h: no pid is ever this large.
PID_LIMIT = 2**22
# Bytes of an entry: pid and memory; and both instances of MIG; and protected memory.
LAYOUTS = (24, 32, 16)
_ENTRY = struct.Struct("=I4xQ")
_UNTOUCHED = 0xA5
_MEMORY_UNKNOWN = 2**64 - 1
# Between asking how many and asking for them, processes come: then it is asked again for more.
MAX_TRIES = 6
MAX_LISTED = 2_000

# Newest first. The last has entries of 16 bytes, as drivers before 460 have them.
_COMPUTE = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetComputeRunningProcesses",
)
_GRAPHICS = (
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v2",
    "nvmlDeviceGetGraphicsRunningProcesses",
)
_MPS = (
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v2",
)

Entries = tuple[tuple[int, int | None], ...]


def processes(device: Device) -> tuple[ProcessUse, ...] | None:
    """Everybody on the device, or None: a list that is unreadable or garbage is not "nobody"."""
    compute = _read(device, _COMPUTE, unsupported=None)
    graphics = _read(device, _GRAPHICS, unsupported=())
    mps = _read(device, _MPS, unsupported=())
    if compute is None or graphics is None or mps is None:
        return None
    memory: dict[int, int | None] = {}
    for pid, used in (*graphics, *mps, *compute):
        memory[pid] = used if used is not None else memory.get(pid)
    computing = {pid for pid, _ in (*mps, *compute)}
    if len(memory) > MAX_LISTED:
        return None
    return tuple(
        ProcessUse(pid=pid, memory_bytes=used, graphics_only=pid not in computing)
        for pid, used in memory.items()
    )


def _read(device: Device, names: Iterable[str], *, unsupported: Entries | None) -> Entries | None:
    """The list by the newest call that there is; ``unsupported`` where the device keeps none."""
    for name in names:
        code, entries = _fetch(device, name)
        if code == NOT_FOUND:
            return ()
        if code == SUCCESS:
            return entries
        if code not in {FUNCTION_NOT_FOUND, NOT_SUPPORTED}:
            return None
    return unsupported


def _fetch(device: Device, name: str) -> tuple[int, Entries | None]:
    """The code of the last call, and the entries if they could be made out."""
    number = ctypes.c_uint(0)
    code = device.ask_list(name, number, None)
    if code == SUCCESS:
        return code, ()
    room = 0
    for _ in range(MAX_TRIES):
        if code != INSUFFICIENT_SIZE:
            break
        room = 2 * max(room, number.value) + 5
        if room > MAX_LISTED * 4:
            break
        buffer = (ctypes.c_ubyte * (room * max(LAYOUTS)))(*[_UNTOUCHED] * (room * max(LAYOUTS)))
        number.value = room
        code = device.ask_list(name, number, buffer)
        if code == SUCCESS:
            return code, _decode(bytes(buffer), number.value)
    return code, None


def _decode(written: bytes, number: int) -> Entries | None:
    """What was written, read by the layout that fits it; None if it is no list of processes."""
    if number > len(written) // max(LAYOUTS):
        return None
    extent = len(written.rstrip(bytes([_UNTOUCHED])))
    fitting = [size for size in LAYOUTS if extent == size * number] or LAYOUTS
    readings = {_entries(written, number, size) for size in fitting} - {None}
    if len(readings) == 1:
        return readings.pop()
    logger.warning("NVML lists %d processes in %d bytes, which fits none", number, extent)
    return None


def _entries(written: bytes, number: int, size: int) -> Entries | None:
    """The entries of one layout, or None if one of them names what cannot be a process."""
    found = []
    for place in range(number):
        pid, used = _ENTRY.unpack_from(written, place * size)
        if not 0 < pid < PID_LIMIT or not (used < MAX_MEMORY_BYTES or used == _MEMORY_UNKNOWN):
            return None
        found.append((pid, count(used, limit=MAX_MEMORY_BYTES)))
    return tuple(found)
