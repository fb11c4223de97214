"""What a calendar draws: devices, and every booking that touches a period, as ready JSON.

On PostgreSQL the database writes the JSON itself, several times faster than any serialiser; elsewhere it
is made of plain values. Both give the rows of `visible.calendar_row`, byte for byte; a test holds them to
it for every kind of viewer.
"""

from datetime import timedelta
from typing import Any, Final

import orjson
from django.conf import settings
from django.db import connection
from django.db.models import F, Q, QuerySet

from reservations.core.period import Period
from reservations.models import Allocation, Booking, Device
from reservations.selectors import visible

LONGEST: Final = timedelta(days=62)

# The session's zone is UTC (Django sees to it), so to_char writes UTC. The condition on the allocations'
# ends is a FILTER, not a join condition: the planner takes it for a rare match and would loop over loops.
# OFFSET 0 keeps it from merging `held` and `booked` into joins: it guesses that a hundredth of all periods
# overlap any week, and from a million bookings on it would read them all, for a few thousand.
_ROWS: Final = """
WITH placed AS MATERIALIZED (
    SELECT d.id, d.uuid, row_number() OVER (ORDER BY h.name, d.index, d.uuid) AS place
    FROM reservations_device d JOIN reservations_host h ON h.id = d.host_id
), shown AS MATERIALIZED (
    SELECT a.booking_id AS id FROM reservations_allocation a
    WHERE a.device_id = ANY(%(devices)s) AND a.holds
      AND TSTZRANGE(a.start, a."end", '[)') && TSTZRANGE(%(start)s, %(end)s, '[)')
    UNION
    SELECT b.id FROM reservations_booking b JOIN reservations_allocation a ON a.booking_id = b.id
    WHERE b.state = 'pending' AND b."end" > %(start)s AND b.start < %(end)s
      AND a.device_id = ANY(%(devices)s)
), held AS MATERIALIZED (
    SELECT shown.id, a.device_id, a."end" FROM shown CROSS JOIN LATERAL (
        SELECT device_id, "end" FROM reservations_allocation WHERE booking_id = shown.id OFFSET 0
    ) a
), booked AS MATERIALIZED (
    SELECT b.* FROM shown CROSS JOIN LATERAL (
        SELECT * FROM reservations_booking WHERE id = shown.id OFFSET 0
    ) b
), used AS MATERIALIZED (
    SELECT held.id,
        array_agg(placed.uuid ORDER BY placed.place) FILTER (WHERE held."end" = b."end") AS devices
    FROM held JOIN booked b ON b.id = held.id JOIN placed ON placed.id = held.device_id
    GROUP BY held.id
), mine AS MATERIALIZED (
    SELECT p.booking_id AS id FROM reservations_booking_people p WHERE p.user_id = %(viewer)s
), judged AS (
    SELECT b.*, u.username, u.display_name, t.name AS team, used.devices,
        (%(operator)s OR b.owner_id = %(viewer)s OR b.team_id = ANY(%(teams)s)
         OR b.id IN (SELECT id FROM mine)) IS TRUE AS whole
    FROM booked b JOIN used ON used.id = b.id
    JOIN reservations_user u ON u.id = b.owner_id
    LEFT JOIN reservations_team t ON t.id = b.team_id
)
SELECT coalesce(string_agg(row_to_json(r)::text, ','), '') FROM (
    SELECT id, revision, state, kind,
        replace(to_char(start, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000Z', 'Z') AS start,
        replace(to_char("end", 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000Z', 'Z') AS "end",
        coalesce(devices, '{}') AS devices,
        CASE WHEN whole OR %(names)s THEN row_to_json((SELECT o FROM (
            SELECT username, coalesce(nullif(display_name, ''), username) AS name) o)) END AS owner,
        CASE WHEN whole THEN ARRAY(
            SELECT u.username FROM reservations_booking_people p
            JOIN reservations_user u ON u.id = p.user_id
            WHERE p.booking_id = judged.id ORDER BY u.username) ELSE '{}' END AS people,
        CASE WHEN whole OR %(names)s THEN team END AS team,
        pinned,
        CASE WHEN whole THEN purpose ELSE '' END AS purpose,
        CASE WHEN whole AND held_back_since IS NOT NULL THEN row_to_json((SELECT o FROM (
            SELECT 'held_back' AS state, held_back_why AS reason,
                replace(to_char(held_back_since, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '.000000Z', 'Z')
                AS since) o)) END AS opening
    FROM judged ORDER BY judged.start, id
) r
"""


def calendar_json(period: Period, *, viewer: visible.Viewer, host: str | None = None) -> bytes:
    """``{"devices": […], "bookings": […]}``; bookings in the order of start and id."""
    devices = _devices(host)
    keys = [device["id"] for device in devices]
    drawn = [{name: device[name] for name in device if name != "id"} for device in devices]
    rows = _rows_by_sql if connection.vendor == "postgresql" else _rows_by_python
    return b'{"devices":%b,"bookings":[%b]}' % (
        orjson.dumps(drawn),
        rows(keys, period, viewer),
    )


def _devices(host: str | None) -> list[dict[str, Any]]:
    devices = Device.objects.exclude(state=Device.State.RETIRED)
    if host is not None:
        devices = devices.filter(host__name=host)
    rows = devices.order_by("host__name", "index", "uuid").values(
        "id",
        "uuid",
        "index",
        "vendor",
        "model",
        "memory_bytes",
        "kind",
        "bookable",
        "managed_by",
        "state",
        host_name=F("host__name"),
        parent_uuid=F("parent__uuid"),
    )
    return [
        {
            "id": row["id"],
            "uuid": row["uuid"],
            "host": row["host_name"],
            "index": row["index"],
            "name": f"{row['model']} · {row['index']}",
            "vendor": row["vendor"],
            "model": row["model"],
            "memory_bytes": row["memory_bytes"],
            "kind": row["kind"],
            "parent": row["parent_uuid"],
            "bookable": row["bookable"],
            "managed_by": row["managed_by"],
            "state": row["state"],
        }
        for row in rows
    ]


def _rows_by_sql(devices: list[int], period: Period, viewer: visible.Viewer) -> bytes:
    values: dict[str, Any] = {
        "devices": devices,
        "start": period.start,
        "end": period.end,
        "viewer": viewer.user_id,
        "operator": viewer.is_operator,
        "teams": list(viewer.teams),
        "names": settings.SHOW_OWNERS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ROWS, values)
        return str(cursor.fetchone()[0]).encode()


def _rows_by_python(devices: list[int], period: Period, viewer: visible.Viewer) -> bytes:
    """The same rows from plain values: model instances would take four times as long."""
    touching = Allocation.objects.filter(
        device__in=devices, end__gt=period.start, start__lt=period.end
    )
    held = touching.filter(holds=True).values("booking")
    pending = touching.filter(booking__state="pending").values("booking")
    shown = Booking.objects.filter(Q(pk__in=held) | Q(pk__in=pending))
    used, people = _devices_used(shown), _people(shown)
    rows = shown.order_by("start", "pk").values_list(*_COLUMNS)
    return b",".join(
        orjson.dumps(_row(values, used.get(values[0], []), people.get(values[0], {}), viewer))
        for values in rows
    )


_COLUMNS: Final = (
    "pk",
    "revision",
    "state",
    "kind",
    "start",
    "end",
    "owner_id",
    "owner__username",
    "owner__display_name",
    "team_id",
    "team__name",
    "pinned",
    "purpose",
    "held_back_since",
    "held_back_why",
)


def _row(
    values: tuple[Any, ...], devices: list[str], people: dict[int, str], viewer: visible.Viewer
) -> dict[str, Any]:
    (
        key,
        revision,
        state,
        kind,
        start,
        end,
        owner,
        username,
        name,
        team,
        team_name,
        pinned,
        purpose,
        held_back_since,
        held_back_why,
    ) = values
    row = {
        "id": key,
        "revision": revision,
        "state": state,
        "kind": kind,
        "start": visible.instant(start),
        "end": visible.instant(end),
        "devices": devices,
        "owner": {"username": username, "name": name or username},
        "people": list(people.values()),
        "team": team_name,
        "pinned": pinned,
        "purpose": purpose,
        "opening": visible.opening(held_back_since, held_back_why),
    }
    mine = viewer.user_id == owner or team in viewer.teams or viewer.user_id in people
    return row if viewer.is_operator or mine else visible.masked(row)


def _devices_used(shown: QuerySet[Booking]) -> dict[int, list[str]]:
    """UUIDs by booking, of the devices that it has to its end."""
    used: dict[int, list[str]] = {}
    rows = Allocation.objects.filter(booking__in=shown.values("pk"), end=F("booking__end"))
    rows = rows.order_by("device__host__name", "device__index", "device__uuid")
    for key, uuid in rows.values_list("booking_id", "device__uuid"):
        used.setdefault(key, []).append(uuid)
    return used


def _people(shown: QuerySet[Booking]) -> dict[int, dict[int, str]]:
    """Usernames by user id, by booking."""
    people: dict[int, dict[int, str]] = {}
    rows = Booking.people.through.objects.filter(booking__in=shown.values("pk"))
    for key, user, username in rows.order_by("user__username").values_list(
        "booking_id", "user_id", "user__username"
    ):
        people.setdefault(key, {})[user] = username
    return people
