"""A week of the calendar out of a million allocations: ``GET /api/v1/calendar`` beside its bare SQL.

Both run in this process: the request goes through Django's whole stack (middleware, token, view), the
SQL is one raw cursor query for the same rows, fetched and thrown away.
"""

import statistics
from collections.abc import Iterator
from datetime import timedelta

from django.db import connection
from django.test import Client

from bench import fill
from bench.figures import Figure, alternately_ms, percentile
from bench.site import Site
from reservations import clock
from reservations.core.period import Period
from reservations.selectors import calendar
from reservations.selectors.visible import Viewer
from reservations.services.actors import BERTH
from reservations.services.tokens import issue_token

_BARE = """
SELECT b.id, b.revision, b.state, b.kind, b.start, b."end", d.uuid, u.username, u.display_name,
    t.name, b.pinned, b.purpose
FROM reservations_allocation a
JOIN reservations_booking b ON b.id = a.booking_id
JOIN reservations_device d ON d.id = a.device_id
JOIN reservations_user u ON u.id = b.owner_id
LEFT JOIN reservations_team t ON t.id = b.team_id
WHERE a.holds AND a.device_id = ANY(%s)
  AND tstzrange(a.start, a."end", '[)') && tstzrange(%s, %s, '[)')
ORDER BY b.start, b.id
"""


def measure(site: Site) -> Iterator[Figure]:
    people = fill.people(200)
    devices = fill.devices(64)
    allocations = site.much(1_000_000, 20_000)
    fill.bookings(allocations, on=devices, owners=people, around=fill.today())
    week = Period(fill.today(), fill.today() + timedelta(days=7))
    client = _client(people[0])
    answer = _get(client, week)

    def bare() -> int:
        with connection.cursor() as cursor:
            cursor.execute(_BARE, [[one.pk for one in devices], week.start, week.end])
            return len(cursor.fetchall())

    drawn = answer.json()["bookings"]
    if len(drawn) != bare():
        raise RuntimeError("the bare SQL reads other rows than the calendar draws")
    repeat = site.much(60, 15)
    what = f"calendar week, 64 devices, {allocations:,} allocations, {len(drawn):,} rows"
    whole, sql = alternately_ms(lambda: _get(client, week), bare, repeat=repeat)
    yield _figure(f"{what}: GET /api/v1/calendar", whole, sql)
    viewer = Viewer.of(people[0])
    rows, sql = alternately_ms(
        lambda: calendar.calendar_json(week, viewer=viewer), bare, repeat=repeat
    )
    yield _figure(f"{what}: its JSON alone", rows, sql)


def _client(user: fill.User) -> Client:
    _, secret = issue_token(user, name="bench", scopes=["read"], actor=BERTH, now=clock.now())
    return Client(SERVER_NAME="127.0.0.1", headers={"authorization": f"Bearer {secret}"})


def _get(client: Client, week: Period):
    answer = client.get(
        "/api/v1/calendar", {"from": week.start.isoformat(), "to": week.end.isoformat()}
    )
    if answer.status_code != 200:
        raise RuntimeError(f"{answer.status_code}: {answer.content[:300]!r}")
    return answer


def _figure(name: str, value_ms: list[float], reference_ms: list[float]) -> Figure:
    value, reference = statistics.median(value_ms), statistics.median(reference_ms)
    return Figure(
        name=f"{name} (p99 {percentile(value_ms, 99):.0f} ms)",
        value=value,
        unit="ms",
        reference_name="bare SQL, rows fetched",
        reference=reference,
        target="≤ 2 ×",
        met=value <= 2 * reference,
    )
