"""When a device last did something, and when it was lost or came back: what one reading cannot say."""

import logging
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from reservations.core.wire import Sample
from workers.host.files import replace_unsynced

logger = logging.getLogger(__name__)

BUSY_PERCENT = 5.0
# Drivers and libraries move a little memory about while nothing happens.
GROWTH_BYTES = 2**20
# What a restart may forget.
SAVE_EVERY = timedelta(minutes=1)

Change = Literal["device_lost", "device_back"]


class Activity:
    """For one thread, fed with every round of samples. Remembers over restarts when a device last worked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_busy = self._remembered()
        self._saved = dict(self._last_busy)
        self._memory: dict[str, int] = {}
        self._lost: set[str] = set()

    def stamp(self, samples: Mapping[str, Sample]) -> dict[str, Sample]:
        """The same samples with ``last_busy``."""
        stamped = {uuid: self._stamp(sample) for uuid, sample in samples.items()}
        if any(
            at - self._saved.get(uuid, at - SAVE_EVERY) >= SAVE_EVERY
            for uuid, at in self._last_busy.items()
        ):
            self._save()
        return stamped

    def changes(self, samples: Mapping[str, Sample]) -> list[tuple[str, Change]]:
        """Devices that are lost since the last round, or back. Not knowing is neither."""
        found: list[tuple[str, Change]] = []
        for uuid, sample in samples.items():
            if sample.health == "lost" and uuid not in self._lost:
                self._lost.add(uuid)
                found.append((uuid, "device_lost"))
            elif sample.health == "ok" and uuid in self._lost:
                self._lost.discard(uuid)
                found.append((uuid, "device_back"))
        return found

    def _remembered(self) -> dict[str, datetime]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, datetime])
        except (OSError, msgspec.DecodeError):
            return {}

    def _save(self) -> None:
        try:
            replace_unsynced(self._path, msgspec.json.encode(self._last_busy))
        except OSError:
            # In a minute again: only a restart would forget it.
            logger.exception("when devices last worked cannot be written down")
        self._saved = dict(self._last_busy)

    def _stamp(self, sample: Sample) -> Sample:
        busy = (sample.utilization_percent or 0.0) >= BUSY_PERCENT
        if sample.memory_used_bytes is not None:
            before = self._memory.get(sample.uuid, sample.memory_used_bytes)
            busy = busy or sample.memory_used_bytes - before > GROWTH_BYTES
            self._memory[sample.uuid] = sample.memory_used_bytes
        if busy:
            self._last_busy[sample.uuid] = sample.at
        return msgspec.structs.replace(sample, last_busy=self._last_busy.get(sample.uuid))
