"""Xids: errors of a GPU that its driver tells of by event.

All are logged. Those that are no program's fault are counted, with the instant of the last.
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reservations.core.wire import HealthProblem
from workers.host.clock import HostClock
from workers.host.vendors.base import VendorError
from workers.host.vendors.nvidia.library import TIMEOUT, XID_EVENTS, Library, NvmlError, address

logger = logging.getLogger(__name__)

WAIT_MS = 500
SHOWN_FOR = timedelta(hours=24)
# Those that point at the hardware or the driver; the others come from programs that are at fault.
SERIOUS: Mapping[int, str] = {
    48: "an uncorrectable memory error",
    62: "an internal halt",
    64: "a memory page or row could not be retired",
    74: "an NVLink error",
    79: "the GPU has fallen off the bus",
    92: "many memory errors that were corrected",
    94: "a memory error, contained to its program",
    95: "an uncontained memory error",
    119: "the GPU's system processor does not answer",
    120: "an error of the GPU's system processor",
}


@dataclass(frozen=True, slots=True)
class _Seen:
    """How often, and when last."""

    count: int
    at: datetime


class XidWatch:
    """A thread of its own that waits for events as long as the library is open.

    `follow` starts it, and starts it anew for other devices. Everything else may be read at any time.
    """

    def __init__(self, library: Library, clock: HostClock) -> None:
        self._library = library
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._handles: Mapping[str, Any] = {}
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, int], _Seen] = {}

    def follow(self, handles: Mapping[str, Any]) -> None:
        """Watch these devices, by UUID. Called whenever they were listed."""
        self._handles = handles
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="xids", daemon=True)
            self._thread.start()

    def problems(self) -> list[HealthProblem]:
        now = self._clock.now()
        with self._lock:
            seen = sorted(self._seen.items())
        return [
            HealthProblem(
                code="xid",
                device=uuid,
                text=f"The driver reported Xid {xid} ({SERIOUS[xid]}) {_times(one.count)}, "
                f"last at {one.at:%Y-%m-%d %H:%M:%S} UTC.",
            )
            for (uuid, xid), one in seen
            if now - one.at < SHOWN_FOR
        ]

    def _run(self) -> None:
        try:
            with self._library.session():
                while self._library.is_open and self._watch(self._handles):
                    pass
        except VendorError as error:
            logger.debug("no Xids: %s", error)

    def _watch(self, handles: Mapping[str, Any]) -> bool:
        """Waits until the devices are others or the library closes; False where there are no events."""
        uuids = {address(handle): uuid for uuid, handle in handles.items()}
        try:
            events = self._library.call("nvmlEventSetCreate")
        except NvmlError as error:
            logger.debug("no Xids: %s", error)
            return False
        try:
            watched = [uuid for uuid, one in handles.items() if self._register(one, events)]
            while watched and self._library.is_open and self._handles == handles:
                self._wait(events, uuids)
            return bool(watched)
        except NvmlError as error:
            logger.warning("Xids cannot be waited for: %s", error)
            return False
        finally:
            self._library.call("nvmlEventSetFree", events)

    def _register(self, handle: Any, events: Any) -> bool:
        try:
            self._library.call("nvmlDeviceRegisterEvents", handle, XID_EVENTS, events)
        except NvmlError as error:
            logger.debug("no Xids of a device: %s", error)
            return False
        return True

    def _wait(self, events: Any, uuids: Mapping[int, str]) -> None:
        try:
            event = self._library.call("nvmlEventSetWait", events, WAIT_MS)
        except NvmlError as error:
            if error.code != TIMEOUT:
                raise
            return
        uuid, xid = uuids.get(address(event.device)), int(event.eventData)
        logger.warning("Xid %d device=%s", xid, uuid)
        if uuid is None or xid not in SERIOUS:
            return
        with self._lock:
            before = self._seen.get((uuid, xid))
            self._seen[uuid, xid] = _Seen((before.count if before else 0) + 1, self._clock.now())


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
