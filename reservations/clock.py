"""The only place of the control plane that reads the clock."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


def now() -> datetime:
    """The present instant, aware, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 -- this is the one reader


def ticking(instant: datetime) -> Callable[[], datetime]:
    """A clock that shows ``instant`` at this moment and runs on from there.

    For decisions that must be taken by the time after a wait for locks.
    """
    began = time.monotonic()
    return lambda: instant + timedelta(seconds=time.monotonic() - began)
