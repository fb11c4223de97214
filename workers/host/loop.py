"""The agent's thread: ticks when it is due or woken, and survives every tick that fails."""

import logging
import threading
import time
from collections.abc import Callable

from workers.host.watchdog import Watchdog

logger = logging.getLogger(__name__)

WAKE_GAP_S = 0.02
AGAIN_S = 1.0
# sysexits.h EX_SOFTWARE: systemd starts the worker again.
LOOP_LEFT = 70


class Loop:
    """``tick`` returns the seconds until the next is due; ``summary`` says in a line what it found.

    ``leave`` is called with `LOOP_LEFT` if the loop ends without having been asked to.
    """

    def __init__(
        self,
        tick: Callable[[], float],
        *,
        summary: Callable[[], str],
        leave: Callable[[int], object],
    ) -> None:
        self._tick = tick
        self._summary = summary
        self._leave = leave
        self._watchdog = Watchdog()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="agent", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Tick now."""
        self._wake.set()

    def stop(self) -> None:
        """Ends after the present tick."""
        if not self._stopping.is_set():
            self._watchdog.stopping()
        self._stopping.set()
        self._wake.set()

    def join(self, limit_s: float) -> None:
        if self._thread.is_alive():
            self._thread.join(limit_s)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                wait_s = self._tick_safely()
                rested_at = time.monotonic() + WAKE_GAP_S
                if self._wake.wait(wait_s):
                    # However often somebody nudges, most of the time is not spent looking.
                    self._stopping.wait(max(0.0, rested_at - time.monotonic()))
                self._wake.clear()
        finally:
            if not self._stopping.is_set():
                logger.critical("the agent's loop has ended; leaving")
                self._leave(LOOP_LEFT)

    def _tick_safely(self) -> float:
        try:
            wait_s = self._tick()
            self._watchdog.alive(self._summary())
        except Exception:
            logger.exception("tick failed")
            return AGAIN_S
        return wait_s
