"""Bookings through REST at 10,000 existing, beside the same request path without the booking work.

Two web processes, one PostgreSQL, four scripts with connections of their own that book without pause, two
at each process, as a proxy in front of them would deal them out: processes that share a socket take
connections by chance, and all four at one would measure luck. Short rounds on the one and the other take turns.
"""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from bench import fill
from bench.figures import Figure, percentile
from bench.service import HOUR, free_hours
from bench.site import Site
from bench.web import Answer, Caller, token, web

CALLERS = 4
EXISTING = 10_000


@dataclass
class Measured:
    seconds: float = 0.0
    answers: list[Answer] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return len(self.answers) / self.seconds

    @property
    def times_ms(self) -> list[float]:
        return [answer.took_ms for answer in self.answers]


class Wishes:
    """Bodies that can all be booked. Safe to use from any thread."""

    def __init__(self, devices: Sequence[fill.Device]) -> None:
        self._free = free_hours(devices)
        self._lock = threading.Lock()

    def next(self) -> dict[str, Any]:
        with self._lock:
            device, start = next(self._free)
        end = start + HOUR
        return {"devices": [device.uuid], "start": start.isoformat(), "end": end.isoformat()}


def measure(site: Site) -> Iterator[Figure]:
    people, devices = fill.people(200), fill.devices(64)
    fill.bookings(EXISTING, on=devices, owners=people, around=fill.today())
    secrets = [token(one) for one in people[:CALLERS]]
    wishes = Wishes(devices)
    each = site.much(25, 10)
    with (
        _processes("webapp.asgi") as whole,
        _processes("bench.without_booking") as bare,
        ThreadPoolExecutor(CALLERS) as pool,
    ):
        booking = [Caller(port, one) for port, one in zip(cycle(whole), secrets, strict=False)]
        passing = [Caller(port, one) for port, one in zip(cycle(bare), secrets, strict=False)]
        for callers in (booking, passing):
            _round(pool, callers, wishes, each, Measured())
        booked, passed = Measured(), Measured()
        for _ in range(site.much(12, 3)):
            _round(pool, booking, wishes, each, booked)
            _round(pool, passing, wishes, each, passed)
        for caller in [*booking, *passing]:
            caller.close()
    _require_all_booked([*booked.answers, *passed.answers])
    yield from _figures(booked, passed)


@contextlib.contextmanager
def _processes(application: str) -> Iterator[list[int]]:
    """The ports of two web processes."""
    with web(application) as one, web(application) as other:
        yield [one, other]


def _round(
    pool: ThreadPoolExecutor, callers: Sequence[Caller], wishes: Wishes, each: int, into: Measured
) -> None:
    """Every caller books ``each`` times, all at once."""
    began = time.perf_counter()
    for answers in pool.map(lambda caller: _book(caller, wishes, each), callers):
        into.answers += answers
    into.seconds += time.perf_counter() - began


def _book(caller: Caller, wishes: Wishes, times: int) -> list[Answer]:
    return [caller.post("/api/v1/bookings/", wishes.next()) for _ in range(times)]


def _require_all_booked(answers: Sequence[Answer]) -> None:
    for answer in answers:
        if answer.status != 201:
            raise RuntimeError(f"{answer.status}: {answer.body}")


def _figures(booked: Measured, passed: Measured) -> Iterator[Figure]:
    where = f"POST /api/v1/bookings/ at {EXISTING:,} existing, {CALLERS} callers"
    without = "the same path without booking work"
    yield Figure(
        name=f"{where}: rate",
        value=booked.rate,
        unit="/s",
        reference_name=without,
        reference=passed.rate,
        target="≥ 0.5 ×",
        met=booked.rate >= 0.5 * passed.rate,
    )
    for percent, target in ((50, "—"), (99, "≤ 100 ms")):
        value = percentile(booked.times_ms, percent)
        yield Figure(
            name=f"{where}: p{percent}",
            value=value,
            unit="ms",
            reference_name=without,
            reference=percentile(passed.times_ms, percent),
            target=target,
            met=percent != 99 or value <= 100,
        )
