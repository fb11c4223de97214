"""Reports that wait for the control plane: appended to a file, resent until acknowledged.

A report is written before it is sent and leaves only when the control plane has named its id, so an
outage, a restart or a lost answer neither loses nor doubles it (the receiver stores an id once).
"""

import contextlib
import logging
import os
import threading
from pathlib import Path

import msgspec

from reservations.core.wire import Report
from workers.host.files import replace_file, set_aside

logger = logging.getLogger(__name__)

# The beginning of a story is worth more than its thousandth repetition: when full, new ones are refused.
MAX_REPORTS = 100_000


class Spool:
    """Safe to use from any thread; one process at a time (the agent's lock sees to that)."""

    def __init__(self, path: Path, *, limit: int = MAX_REPORTS) -> None:
        self._path = path
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: dict[str, Report] = {}
        self._load()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        return len(self._waiting) >= self._limit

    def add(self, *reports: Report) -> None:
        """On disk when this returns; in memory only, and logged, where the disk fails."""
        with self._lock:
            room = self._limit - len(self._waiting)
            if len(reports) > room:
                logger.error("spool is full; %d reports refused", len(reports) - room)
            kept = reports[:room]
            if not kept:
                return
            self._waiting.update((report.id, report) for report in kept)
            try:
                self._append(b"".join(msgspec.json.encode(report) + b"\n" for report in kept))
            except OSError:
                logger.exception("spool=%s", self._path)

    def _append(self, lines: bytes) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    def oldest(self, count: int) -> tuple[Report, ...]:
        with self._lock:
            return tuple(list(self._waiting.values())[:count])

    def acknowledge(self, ids: set[str]) -> None:
        """Lets go of these reports."""
        with self._lock:
            for known in ids & self._waiting.keys():
                del self._waiting[known]
            rest = (msgspec.json.encode(report) + b"\n" for report in self._waiting.values())
            try:
                replace_file(self._path, b"".join(rest))
            except OSError:
                # Sent again after a restart, and stored once.
                logger.exception("spool=%s", self._path)

    def _load(self) -> None:
        broken = False
        with contextlib.suppress(FileNotFoundError):
            for line in self._path.read_bytes().splitlines():
                try:
                    report = msgspec.json.decode(line, type=Report)
                except msgspec.DecodeError:
                    # The last line of a spool whose writer was killed may be cut short.
                    broken = True
                else:
                    self._waiting[report.id] = report
        if broken:
            logger.error("spool=%s has unreadable lines; the readable ones are kept", self._path)
            set_aside(self._path)
            self.acknowledge(set())
