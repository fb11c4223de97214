"""Waiting for something that will be true, with a limit: instead of a sleep of some length."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(look: Callable[[], T], *, limit_s: float = 10.0, every_s: float = 0.02) -> T:
    """The first true answer of ``look``. Raises AssertionError after the limit."""
    deadline = time.monotonic() + limit_s
    while True:
        answer = look()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"still {answer!r} after {limit_s} s")
        time.sleep(every_s)
