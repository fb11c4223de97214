"""Figures that can be what they say: drivers answer sentinels, such as 2**32 - 1 or 9.2e18."""

MAX_MEMORY_BYTES = 2**44


def within(value: float | None, low: float, high: float) -> float | None:
    return float(value) if value is not None and low <= value <= high else None


def count(value: int | None, *, limit: int) -> int | None:
    return value if value is not None and 0 <= value < limit else None
