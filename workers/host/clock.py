"""The host's idea of now: the server's time at the last exchange, carried on by CLOCK_BOOTTIME.

Steps of the wall clock change nothing. The wall clock is used only where no exchange of this boot is
known (`trusted` is False then), and nobody is stopped on its word.
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

# Corrections smaller than this never make time run backwards: an ended slot must not begin again.
SMALL_STEP = timedelta(seconds=2)
# No drift explains more: the server's clock was set, or is wrong. Slots must not end by the thousand
# because of that, so it is believed only once it has lasted for so long.
JUMP = timedelta(seconds=60)
JUMP_LASTS_S = 300.0


def boottime_s() -> float:
    """Seconds since the machine started, time asleep included."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 -- the one reader on a host


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class Anchor(msgspec.Struct, frozen=True, kw_only=True):
    """The server's time at one moment of one boot."""

    boot_id: str
    boottime_s: float
    server_time: datetime


class HostClock:
    """Tells the server's time without asking the server. Safe to use from any thread."""

    def __init__(
        self,
        *,
        boottime_s: Callable[[], float] = boottime_s,
        wall: Callable[[], datetime] = wall,
        boot: str | None = None,
    ) -> None:
        self.boottime_s = boottime_s
        self.boot_id = boot or boot_id()
        self._wall = wall
        self._anchor: Anchor | None = None
        self._latest: datetime | None = None
        # To where the server's clock has jumped, as its time when the machine started; and since when.
        self._jump: tuple[datetime, float] | None = None
        self._lock = threading.Lock()

    @property
    def trusted(self) -> bool:
        """Whether the time rests on an exchange of this boot."""
        return self._anchor is not None

    @property
    def anchor(self) -> Anchor | None:
        return self._anchor

    @property
    def offset_s(self) -> float | None:
        """Wall clock minus server clock, or None before the first exchange."""
        if not self.trusted:
            return None
        return (self._wall() - self.now()).total_seconds()

    def now(self) -> datetime:
        with self._lock:
            present = self._computed(self.boottime_s())
            if self._latest and timedelta(0) < self._latest - present < SMALL_STEP:
                return self._latest
            self._latest = present
            return present

    def restore(self, anchor: Anchor) -> None:
        """Goes on from an exchange that was kept on disk, if it was in this boot."""
        if anchor.boot_id == self.boot_id:
            with self._lock:
                self._anchor = anchor

    def doubts(self, server_time: datetime, *, sent_s: float, received_s: float) -> bool:
        """Whether this is a jump of the server's clock that has not lasted long enough to be believed."""
        with self._lock:
            return self._jumped(server_time, sent_s, received_s) and not self._lasts(received_s)

    def adjust(self, server_time: datetime, *, sent_s: float, received_s: float) -> None:
        """Learns from an exchange that took from ``sent_s`` to ``received_s`` on CLOCK_BOOTTIME.

        The server's time was read somewhere between the two, so a clock that already agrees with that
        is left alone: a slow answer does not make it worse. Nor does a jump that is in doubt.
        """
        with self._lock:
            if self._jumped(server_time, sent_s, received_s):
                if not self._lasts(received_s):
                    return
                self._latest, self._jump = None, None
            if self._anchor is None:
                self._anchor = self._at((sent_s + received_s) / 2, server_time)
            elif server_time < self._computed(sent_s):
                self._anchor = self._at(sent_s, server_time)
            elif server_time > self._computed(received_s):
                self._anchor = self._at(received_s, server_time)

    def _jumped(self, server_time: datetime, sent_s: float, received_s: float) -> bool:
        """Remembers since when the server's clock is elsewhere; any answer from there bears it out."""
        early, late = self._computed(sent_s) - JUMP, self._computed(received_s) + JUMP
        if self._anchor is None or early <= server_time <= late:
            self._jump = None
            return False
        began = server_time - timedelta(seconds=received_s)
        if self._jump is None or abs(self._jump[0] - began) > JUMP:
            self._jump = began, received_s
        return True

    def _lasts(self, received_s: float) -> bool:
        return self._jump is not None and received_s - self._jump[1] >= JUMP_LASTS_S

    def _at(self, boottime_s: float, server_time: datetime) -> Anchor:
        return Anchor(boot_id=self.boot_id, boottime_s=boottime_s, server_time=server_time)

    def _computed(self, boottime_s: float) -> datetime:
        if self._anchor is None:
            return self._wall()
        passed = boottime_s - self._anchor.boottime_s
        return self._anchor.server_time + timedelta(seconds=passed)
