"""The calendar's JSON: what PostgreSQL writes is, to the byte, what the one masking function says."""

from datetime import timedelta

import orjson
import pytest
from django.db import connection

from reservations.core.period import Period
from reservations.models import Booking, Device, Host, User
from reservations.selectors import bookings, calendar, visible
from tests import build
from tests.api.callers import Caller
from tests.build import NOON

pytestmark = pytest.mark.django_db

WEEK = Period(NOON - timedelta(days=3), NOON + timedelta(days=4))


@pytest.fixture(params=[True, False], ids=["names shown", "names hidden"])
def show_owners(request: pytest.FixtureRequest, settings) -> bool:
    settings.SHOW_OWNERS = request.param
    return request.param


def lively_site() -> dict[str, User]:
    """Bookings of every kind that a row can show, and somebody in every role."""
    sim_b, sim_a = build.host("sim-b"), build.host("sim-a")
    devices = [build.device(on, index=n) for on in (sim_b, sim_a) for n in (1, 0)]
    people = {name: build.user(name) for name in ("owner", "mate", "boss", "guest", "stranger")}
    people["owner"].display_name = 'Ælfgifu "泊" \\ 😀 عربي'
    people["owner"].save()
    people["operator"] = build.operator("operator")
    team = build.team(
        people["owner"], people["mate"], managers=(people["boss"],), name="team/数\u2028据"
    )
    shared = build.booking(
        devices[0],
        devices[3],
        owner=people["owner"],
        team=team,
        purpose='a "b" \\ c/d\x7f 😀',
        held_back_since=NOON + timedelta(microseconds=20),
        held_back_why='waits for "bob" 😀',
    )
    shared.people.add(people["guest"], build.user("Zoë"), build.user("early"))
    build.booking(devices[1], owner=people["owner"], start=NOON + timedelta(microseconds=120))
    build.booking(devices[1], owner=people["boss"], start=NOON - timedelta(hours=30), hours=29)
    build.booking(devices[2], owner=people["mate"], state="cancelled")
    pending = build.booking(devices[2], owner=people["mate"], state="pending", hours=2)
    pending.people.add(people["owner"], people["guest"])
    # The first card was replaced in the middle of the booking.
    replaced = build.booking(devices[2], owner=people["guest"], start=NOON + timedelta(days=1))
    replaced.allocations.update(end=replaced.start + timedelta(minutes=10))
    replaced.allocations.create(
        device=devices[3],
        start=replaced.start + timedelta(minutes=10),
        end=replaced.end,
        holds=True,
    )
    return people


def rows(viewer: User, *, period: Period = WEEK, host: str | None = None) -> list[dict]:
    body = calendar.calendar_json(period, viewer=visible.Viewer.of(viewer), host=host)
    return orjson.loads(body)["bookings"]


@pytest.mark.usefixtures("show_owners")
@pytest.mark.parametrize("name", ["owner", "mate", "boss", "guest", "stranger", "operator"])
def test_every_row_is_the_masked_row_to_the_byte(name: str) -> None:
    viewer = visible.Viewer.of(lively_site()[name])
    shown = bookings.whole().exclude(state="cancelled").order_by("start", "pk")
    expected = [visible.calendar_row(one, viewer=viewer) for one in shown]
    body = calendar.calendar_json(WEEK, viewer=viewer)
    assert len(expected) == 5
    assert body.partition(b'"bookings":')[2] == orjson.dumps(expected) + b"}"


def test_a_booking_that_only_touches_the_range_is_left_out() -> None:
    viewer = build.user()
    build.booking(build.device(), start=NOON, hours=1)
    hour = timedelta(hours=1)
    assert rows(viewer, period=Period(NOON - hour, NOON)) == []
    assert rows(viewer, period=Period(NOON + hour, NOON + 2 * hour)) == []
    assert len(rows(viewer, period=Period(NOON + hour / 2, NOON + 2 * hour))) == 1


def test_one_host_shows_its_devices_and_what_touches_them() -> None:
    sim_a, sim_b = build.host("sim-a"), build.host("sim-b")
    here, there = build.device(sim_a), build.device(sim_b)
    both = build.booking(here, there)
    build.booking(there, start=NOON + timedelta(hours=5))
    viewer = visible.Viewer.of(build.user())
    drawn = orjson.loads(calendar.calendar_json(WEEK, viewer=viewer, host="sim-a"))
    assert [one["uuid"] for one in drawn["devices"]] == [here.uuid]
    assert [one["id"] for one in drawn["bookings"]] == [both.pk]
    assert drawn["bookings"][0]["devices"] == [here.uuid, there.uuid]


def test_devices_come_by_host_and_index_and_retired_ones_do_not() -> None:
    host = build.host("sim-a")
    whole = build.device(host, index=0, bookable=False)
    part = build.device(host, index=1, kind=Device.Kind.MIG, parent=whole)
    build.device(host, index=2, state=Device.State.RETIRED)
    first = build.device(Host.objects.create(name="a-first"), index=7)
    viewer = visible.Viewer.of(build.user())
    drawn = orjson.loads(calendar.calendar_json(WEEK, viewer=viewer))["devices"]
    assert [one["uuid"] for one in drawn] == [first.uuid, whole.uuid, part.uuid]
    assert drawn[2]["parent"] == whole.uuid
    assert drawn[2]["name"] == part.name


def test_an_empty_range_is_an_empty_list() -> None:
    assert rows(build.user()) == []


def test_the_statement_stays_linear(django_assert_num_queries) -> None:
    device = build.device()
    for hour in range(40):
        build.booking(device, start=NOON + timedelta(hours=hour))
    viewer = visible.Viewer.of(build.user())
    statements = 2 if connection.vendor == "postgresql" else 4
    with django_assert_num_queries(statements):
        calendar.calendar_json(WEEK, viewer=viewer)
    assert Booking.objects.count() == 40


class TestThroughRest:
    QUERY = {"from": WEEK.start.isoformat(), "to": WEEK.end.isoformat()}

    def test_what_has_not_changed_is_304(self) -> None:
        booking = build.booking(build.device())
        caller = Caller(build.user())
        first = caller.get("calendar", **self.QUERY)
        assert first.status_code == 200
        assert first["Content-Type"] == "application/json"
        assert first["ETag"].startswith('"')
        assert "private" in first["Cache-Control"]
        same = caller.get("calendar", {"If-None-Match": first["ETag"]}, **self.QUERY)
        assert (same.status_code, same.content, same["ETag"]) == (304, b"", first["ETag"])
        Booking.objects.filter(pk=booking.pk).update(revision=2)
        changed = caller.get("calendar", {"If-None-Match": first["ETag"]}, **self.QUERY)
        assert changed.status_code == 200
        assert changed["ETag"] != first["ETag"]

    def test_each_viewer_has_an_etag_of_what_they_see(self) -> None:
        booking = build.booking(build.device(), purpose="mine")
        seen = [
            Caller(viewer).get("calendar", **self.QUERY)["ETag"]
            for viewer in (booking.owner, build.user(), build.user())
        ]
        assert seen[0] != seen[1] == seen[2]

    def test_one_host(self) -> None:
        here = build.device(build.host("sim-a"))
        build.device(build.host("sim-b"))
        drawn = Caller(build.user()).get("calendar", host="sim-a", **self.QUERY).json()
        assert [one["uuid"] for one in drawn["devices"]] == [here.uuid]
