"""The heartbeat of a host: the newest sample of each device, and what is wrong.

A newer one replaces one that was not sent: nobody wants to know how it was.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from reservations.core.wire import MAX_SKEW_S, MAX_TEXT, HealthProblem, Samples
from workers.host.clock import HostClock

WATCHED_S = 1.0


class Heartbeat:
    """`due` and `offer` are for the agent's thread, `take` and `watch` for that of the link."""

    def __init__(self, *, on_offer: Callable[[], None]) -> None:
        self._on_offer = on_offer
        self._offered_at: datetime | None = None
        self._pending: Samples | None = None
        self._watched = False

    def due(self, *, sample_s: float, first: datetime) -> datetime:
        """When the next one is to be offered: ``first`` if there was none yet."""
        if self._offered_at is None:
            return first
        return self._offered_at + timedelta(seconds=WATCHED_S if self._watched else sample_s)

    def offer(self, samples: Samples) -> None:
        self._offered_at = samples.at
        self._pending = samples
        self._on_offer()

    def take(self) -> Samples | None:
        """Hands it out once."""
        pending, self._pending = self._pending, None
        return pending

    def watch(self, watched: bool) -> bool:
        """Whether somebody looks at live pages now; True if that has changed."""
        changed = watched != self._watched
        self._watched = watched
        return changed


def own_problems(
    *,
    clock: HostClock,
    as_of: datetime | None,
    sees_the_host: bool,
    vendor_trouble: str,
    spool_full: bool,
) -> list[HealthProblem]:
    """What is wrong with the host as a whole, in plain sentences."""
    found = []
    if vendor_trouble:
        found.append(HealthProblem(code="vendor", text=vendor_trouble[:MAX_TEXT]))
    if not sees_the_host:
        text = "the worker is not in the host's pid namespace: it stops nobody"
        found.append(HealthProblem(code="pid_namespace", text=text))
    offset_s = clock.offset_s
    if offset_s is not None and abs(offset_s) > MAX_SKEW_S:
        text = f"the host's clock differs from the server's by {offset_s:.1f} s"
        found.append(HealthProblem(code="clock_skew", text=text))
    if spool_full:
        found.append(HealthProblem(code="spool_full", text="new reports cannot be kept"))
    if as_of is None:
        found.append(HealthProblem(code="no_plan", text="there is no plan yet"))
    return found
