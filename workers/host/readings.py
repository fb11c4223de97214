"""Readings with a deadline: one thread per device, so that a hung driver call holds up nobody else.

A call that is late is not stacked: until it returns its device reads ``stale``, and no new call starts.
"""

import logging
import queue
import threading
import time
from collections.abc import Iterable

from reservations.core.wire import Health, Sample
from workers.host.clock import HostClock
from workers.host.vendors.base import Vendor

logger = logging.getLogger(__name__)

# A reading that takes longer than this marks its device stale.
DEADLINE_S = 2.0


class _Reader:
    """The thread of one device. `wanted` holds at most one request."""

    def __init__(self, vendor: Vendor, uuid: str, clock: HostClock) -> None:
        self._vendor = vendor
        self._uuid = uuid
        self._clock = clock
        self._wanted: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._done = threading.Condition()
        self._sample: Sample | None = None
        self.newest: Sample | None = None
        self.asked_at: float | None = None
        threading.Thread(target=self._run, name=f"read {uuid}", daemon=True).start()

    def ask(self) -> None:
        """Starts a reading unless one is under way."""
        with self._done:
            if self.asked_at is None:
                self.asked_at = time.monotonic()
                self._sample = None
                self._wanted.put(True)

    def answer(self, until: float) -> Sample | None:
        """The reading that was asked for, or None if it is not there by ``until`` (monotonic)."""
        with self._done:
            self._done.wait_for(
                lambda: self._sample is not None, max(0.0, until - time.monotonic())
            )
            return self._sample

    def stop(self) -> None:
        self._wanted.put(False)

    def _run(self) -> None:
        while self._wanted.get():
            sample = self._read()
            with self._done:
                self._sample = self.newest = sample
                self.asked_at = None
                self._done.notify_all()

    def _read(self) -> Sample:
        try:
            return self._vendor.sample(self._uuid)
        except Exception:
            logger.exception("reading failed device=%s", self._uuid)
            return Sample(uuid=self._uuid, at=self._clock.now(), health="unknown")


class Readings:
    """Fresh readings of many devices at once, each with its own fate. For one caller at a time."""

    def __init__(self, vendor: Vendor, clock: HostClock) -> None:
        self._vendor = vendor
        self._clock = clock
        self._readers: dict[str, _Reader] = {}

    def take(self, uuids: Iterable[str], *, wait_s: float = DEADLINE_S) -> dict[str, Sample]:
        """A reading of each device that began after this call, or an empty one that says why not.

        ``unknown``: no answer within ``wait_s``, or the vendor's code failed; ``stale``: a call has
        hung for longer than the deadline. Either has ``processes=None``.
        """
        readers = {uuid: self._reader(uuid) for uuid in uuids}
        begun = time.monotonic()
        # A call still under way is an old question; its answer says nothing about now.
        fresh = {uuid for uuid, reader in readers.items() if reader.asked_at is None}
        for uuid in fresh:
            readers[uuid].ask()
        until = begun + wait_s
        return {
            uuid: (reader.answer(until) if uuid in fresh else None) or self._empty(uuid, reader)
            for uuid, reader in readers.items()
        }

    def newest(self, uuid: str) -> Sample:
        """The last reading that came back, however late; an empty one while a call hangs."""
        reader = self._reader(uuid)
        if reader.newest is None or self._hangs(reader):
            return self._empty(uuid, reader)
        return reader.newest

    def close(self) -> None:
        for reader in self._readers.values():
            reader.stop()

    def _reader(self, uuid: str) -> _Reader:
        if uuid not in self._readers:
            self._readers[uuid] = _Reader(self._vendor, uuid, self._clock)
        return self._readers[uuid]

    def _empty(self, uuid: str, reader: _Reader) -> Sample:
        health: Health = "stale" if self._hangs(reader) else "unknown"
        return Sample(uuid=uuid, at=self._clock.now(), health=health)

    @staticmethod
    def _hangs(reader: _Reader) -> bool:
        asked_at = reader.asked_at
        return asked_at is not None and time.monotonic() - asked_at > DEADLINE_S
