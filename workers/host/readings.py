"""Readings with a deadline: one thread per device, so that a hung driver call holds up nobody else.

A call that is late is not stacked: until it returns its device reads ``stale``, and no new call starts.
"""

import logging
import time
from collections.abc import Iterable

from reservations.core.wire import Health, Sample
from workers.host.clock import HostClock
from workers.host.question import Question
from workers.host.vendors.base import Vendor

logger = logging.getLogger(__name__)

# A reading that takes longer than this marks its device stale.
DEADLINE_S = 2.0


class Readings:
    """Fresh readings of many devices at once, each with its own fate. For one caller at a time."""

    def __init__(self, vendor: Vendor, clock: HostClock) -> None:
        self._vendor = vendor
        self._clock = clock
        self._readers: dict[str, Question[Sample]] = {}

    def take(self, uuids: Iterable[str], *, wait_s: float = DEADLINE_S) -> dict[str, Sample]:
        """A reading of each device that began after this call, or an empty one that says why not.

        ``unknown``: no answer within ``wait_s``, or the vendor's code failed; ``stale``: a call has
        hung for longer than the deadline. Either has ``processes=None``.
        """
        readers = {uuid: self._reader(uuid) for uuid in uuids}
        until = time.monotonic() + wait_s
        # A call still under way is an old question; its answer says nothing about now.
        fresh = {uuid for uuid, reader in readers.items() if reader.ask()}
        return {
            uuid: (reader.answer(until) if uuid in fresh else None) or self._empty(uuid, reader)
            for uuid, reader in readers.items()
        }

    def newest(self, uuid: str) -> Sample:
        """The last reading that came back, however late; an empty one while a call hangs."""
        reader = self._reader(uuid)
        if reader.newest is None or reader.hangs(DEADLINE_S):
            return self._empty(uuid, reader)
        return reader.newest

    def close(self) -> None:
        for reader in self._readers.values():
            reader.stop()

    def _reader(self, uuid: str) -> Question[Sample]:
        if uuid not in self._readers:
            self._readers[uuid] = Question(lambda: self._read(uuid), name=f"read {uuid}")
        return self._readers[uuid]

    def _read(self, uuid: str) -> Sample:
        try:
            return self._vendor.sample(uuid)
        except Exception:
            logger.exception("reading failed device=%s", uuid)
            return Sample(uuid=uuid, at=self._clock.now(), health="unknown")

    def _empty(self, uuid: str, reader: Question[Sample]) -> Sample:
        health: Health = "stale" if reader.hangs(DEADLINE_S) else "unknown"
        return Sample(uuid=uuid, at=self._clock.now(), health=health)
