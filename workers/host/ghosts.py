"""Devices that work, or keep memory, for nobody who could be found.

Orphaned workers keep the memory of a process that is gone; after a hard end the driver itself may.
The first are somebody's, the second is nobody's fault: an administrator should look at the device.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from reservations.core.wire import HealthProblem, Sample

# Memory that nobody on the list holds is somebody's when there is this much of it ...
ORPHANED_BYTES = 512 * 2**20
# ... or this much, where the vendor counts the driver's own share as used ...
ORPHANED_BYTES_WITH_RESERVE = 2 * 2**30
# ... and it is still there after this long: drivers take a moment to free it.
ORPHANED_AFTER = timedelta(seconds=5)
# A free device shows a few percent at most.
FULLY_BUSY_PERCENT = 100.0


class Ghosts:
    """Remembers since when each device shows what nobody explains. For one thread."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str], datetime] = {}
        self._before: dict[tuple[str, str], datetime] = {}
        self._problems: list[HealthProblem] = []
        # Whether something of the kind has just begun to show.
        self.suspected = False

    def begin(self) -> None:
        """A new look begins: what is not seen in it again is forgotten."""
        self._before, self._since = self._since, {}
        self._problems = []
        self.suspected = False

    def memory_stays(self, sample: Sample | None, users: Collection[int], *, now: datetime) -> bool:
        """Whether memory stays occupied though no listed process is left to hold it."""
        if sample is None:
            return False
        return self._lasts((sample.uuid, "memory"), not users and _holds_memory(sample), now)

    def look(self, sample: Sample | None, holders: Collection[int], *, now: datetime) -> None:
        """Says so when a device is in use by none of those who could be: ``holders``."""
        if sample is None:
            return
        kept = self._lasts((sample.uuid, "kept"), not holders and _holds_memory(sample), now)
        busy = self._lasts((sample.uuid, "busy"), not holders and _is_busy(sample), now)
        if kept:
            gib = (sample.memory_used_bytes or 0) / 2**30
            self._tell(sample.uuid, f"{gib:.1f} GiB of its memory are occupied")
        elif busy:
            self._tell(sample.uuid, "it computes at full load")

    def problems(self) -> list[HealthProblem]:
        return list(self._problems)

    def haunts(self, device: str) -> bool:
        return any(problem.device == device for problem in self._problems)

    def _lasts(self, what: tuple[str, str], there: bool, now: datetime) -> bool:
        if not there:
            return False
        since = self._since[what] = self._before.get(what, now)
        self.suspected = self.suspected or what not in self._before
        return now - since >= ORPHANED_AFTER

    def _tell(self, device: str, what: str) -> None:
        text = (
            f"Needs attention: {what}, and nobody's process is on the device. A reset may free it."
        )
        self._problems.append(HealthProblem(code="ghost_use", text=text, device=device))


def _holds_memory(sample: Sample) -> bool:
    if sample.memory_used_bytes is None:
        return False
    counts_reserve = sample.memory_reserved_bytes is None
    limit = ORPHANED_BYTES_WITH_RESERVE if counts_reserve else ORPHANED_BYTES
    return sample.memory_used_bytes > limit


def _is_busy(sample: Sample) -> bool:
    return (sample.utilization_percent or 0.0) >= FULLY_BUSY_PERCENT
