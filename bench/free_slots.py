"""The earliest free slot among 100,000 bookings: one SELECT and a sweep, beside the two obvious ways.

The devices are booked densely for thirty days behind and ahead, and what is wanted is longer than any
gap, so that the search goes through all of it. The brute force tries every start on the grid against
every device; it is slow, so it looks at the last half day before the answer only. The SQL
query finds the gaps with a window function, for one device, inside PostgreSQL.
"""

import statistics
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from django.db import connection

from bench import fill
from bench.figures import Figure, alternately_ms
from bench.site import Site
from reservations.core.period import Period, next_on_grid
from reservations.core.slots import Busy, Candidate, Slot, SlotRequest, earliest
from reservations.models import Device
from reservations.selectors import busy

DAYS = 30
SEARCH = timedelta(days=62)
BRUTE_FORCE = timedelta(hours=12)
GRID = timedelta(minutes=5)
_WINDOW = """
SELECT min(free_from) FROM (
    SELECT greatest("end", %(after)s) AS free_from,
        lead(start, 1, %(horizon)s) OVER (PARTITION BY device_id ORDER BY start) AS free_to
    FROM reservations_allocation
    WHERE holds AND device_id = ANY(%(devices)s) AND "end" > %(after)s AND start < %(horizon)s
) gaps WHERE free_to - free_from >= %(duration)s
"""


def measure(site: Site) -> Iterator[Figure]:
    people = fill.people(200)
    bookings = site.much(100_000, 10_000)
    for count in (64,) if site.quick else (64, 1_000):
        fill.empty()
        devices = fill.devices(count, prefix=f"slots{count}")
        step = timedelta(days=2 * DAYS) / (bookings / count)
        # Three quarters busy, to the second, as after many extensions and releases.
        slot = timedelta(seconds=int(step.total_seconds() * 3 / 4))
        fill.bookings(
            bookings, on=devices, owners=people, around=fill.today(), slot=slot, gap=step - slot
        )
        yield from _beside(devices, bookings, duration=step, repeat=site.much(5, 3))


def _beside(
    devices: Sequence[Device], bookings: int, *, duration: timedelta, repeat: int
) -> Iterator[Figure]:
    """``duration`` is longer than any gap."""
    after = fill.today()
    horizon = after + SEARCH
    duration = next_on_grid(after + duration, GRID) - after
    hosts = {one.pk: one.host.name for one in devices}
    candidates = tuple(Candidate(one.uuid, hosts[one.pk]) for one in devices)
    what = f"earliest slot, {len(devices):,} devices, {bookings:,} bookings"

    def search(count: int, *, since: datetime = after) -> Slot:
        held = busy.busy_periods(devices, after=since, until=horizon)
        request = SlotRequest(candidates, count, duration, grid=GRID)
        return earliest(held, request, after=since, horizon=horizon)[0]

    def by_window() -> datetime:
        with connection.cursor() as cursor:
            values = {
                "devices": list(hosts), "after": after, "horizon": horizon, "duration": duration
            }  # fmt: skip
            cursor.execute(_WINDOW, values)
            return next_on_grid(cursor.fetchone()[0], GRID)

    found = search(1)
    _require_equal(found.period.start, by_window())
    value, reference = alternately_ms(lambda: search(1), by_window, repeat=repeat)
    yield _figure(f"{what}: 1 device", value, reference, "SQL window query, 1 device")

    of_four = search(4).period.start
    since = of_four - BRUTE_FORCE
    held = busy.busy_periods(devices, after=since, until=horizon)
    request = SlotRequest(candidates, 4, duration, grid=GRID)
    _require_equal(of_four, _brute_force(held, request, since))
    sweep, tried = alternately_ms(
        lambda: earliest(held, request, after=since, horizon=horizon),
        lambda: _brute_force(held, request, since),
        repeat=1 + repeat // 5,
    )
    yield _figure(f"{what}: 4 of one host, sweep alone", sweep, tried, "brute force, last 12 h")


def _brute_force(held: Busy, request: SlotRequest, after: datetime) -> datetime:
    """The first start on the grid at which enough devices of one host are free."""
    start = next_on_grid(after, request.grid)
    while True:
        period = Period(start, start + request.duration)
        free: dict[str, int] = {}
        for one in request.candidates:
            if not any(taken.overlaps(period) for taken in held.get(one.device, ())):
                free[one.host] = free.get(one.host, 0) + 1
        if max(free.values(), default=0) >= request.count:
            return start
        start += request.grid


def _require_equal(found: datetime, expected: datetime) -> None:
    if found != expected:
        raise RuntimeError(f"the search found {found}, the reference {expected}")


def _figure(name: str, value_ms: list[float], reference_ms: list[float], reference: str) -> Figure:
    value, beside = statistics.median(value_ms), statistics.median(reference_ms)
    return Figure(
        name=name,
        value=value,
        unit="ms",
        reference_name=reference,
        reference=beside,
        target="—",
        met=True,
    )
