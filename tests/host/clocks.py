"""Clocks that stand still until a test moves them."""

from datetime import UTC, datetime, timedelta

from workers.host.clock import HostClock

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


class Hands:
    """Moves the two sources of a clock apart or together."""

    def __init__(self) -> None:
        self.boottime_s = 1000.0
        self.wall = NOON

    def pass_time(self, seconds: float) -> None:
        self.boottime_s += seconds
        self.wall += timedelta(seconds=seconds)

    def clock(self, boot: str = "boot-1") -> HostClock:
        return HostClock(boottime_s=lambda: self.boottime_s, wall=lambda: self.wall, boot=boot)
