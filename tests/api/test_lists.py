"""Lists: stable pages, every filter, and limits on how much one call costs."""

from datetime import timedelta
from typing import Any

import pytest

from reservations import clock
from reservations.models import Allocation, Booking, User
from tests import build
from tests.api.callers import Caller, soon
from tests.build import NOON

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def ids(response: Any) -> list[int]:
    assert response.status_code == 200, response.content
    return [one["id"] for one in response.json()["results"]]


def all_pages(caller: Caller, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    pages = []
    response = caller.get(path, **query)
    while True:
        assert response.status_code == 200, response.content
        pages.append(response.json()["results"])
        following = response.json()["next"]
        if following is None:
            return pages
        response = caller.client.get(following, headers=caller.headers)


def test_5000_bookings_come_in_pages_and_none_is_missing() -> None:
    owner, device = build.user(), build.device()
    made = Booking.objects.bulk_create(
        Booking(
            owner=owner,
            start=NOON + number * HOUR,
            end=NOON + (number + 1) * HOUR,
            planned_end=NOON + (number + 1) * HOUR,
            created=NOON,
            created_by=owner,
        )
        for number in range(5000)
    )
    Allocation.objects.bulk_create(
        Allocation(booking=one, device=device, start=one.start, end=one.end) for one in made
    )
    pages = all_pages(Caller(owner), "bookings/", page_size=500)
    assert [len(page) for page in pages] == [500] * 10
    assert [one["id"] for page in pages for one in page] == [one.pk for one in made]
    assert len(Caller(owner).get("bookings/").json()["results"]) == 100


def test_bookings_that_start_together_are_neither_missed_nor_doubled() -> None:
    made = [build.booking() for _ in range(7)]
    for size in (1, 2, 3, 7, 8):
        pages = all_pages(Caller(build.user()), "bookings/", page_size=size)
        assert [one["id"] for page in pages for one in page] == sorted(one.pk for one in made)


def test_a_page_goes_on_where_it_was_although_rows_come_and_go() -> None:
    made = [build.booking(start=NOON + number * HOUR) for number in range(4)]
    caller = Caller(build.user())
    first = caller.get("bookings/", page_size=2)
    build.booking(start=NOON - HOUR)
    Allocation.objects.filter(booking=made[0]).delete()
    made[0].delete()
    second = caller.client.get(first.json()["next"], headers=caller.headers)
    assert ids(second) == [made[2].pk, made[3].pk]


def test_filters_hold_on_every_page() -> None:
    alice = build.user("alice")
    mine = [build.booking(owner=alice).pk for _ in range(5)]
    for _ in range(5):
        build.booking()
    pages = all_pages(Caller(alice), "bookings/", owner="alice", page_size=2)
    assert [one["id"] for page in pages for one in page] == mine


def test_the_number_of_statements_does_not_grow_with_the_page(
    django_assert_max_num_queries: Any,
) -> None:
    caller = Caller(build.user())
    caller.get("me")
    for _ in range(30):
        build.booking()
    with django_assert_max_num_queries(6):
        caller.get("bookings/")


class TestFilters:
    @pytest.fixture
    def site(self) -> dict[str, Any]:
        alice, bob = build.user("alice"), build.user("bob")
        team = build.team(alice, name="vision")
        sim_a, sim_b = build.host("sim-a"), build.host("sim-b")
        here, there = build.device(sim_a), build.device(sim_b)
        now = clock.now()
        rows = {
            "past": build.booking(here, owner=alice, start=now - 5 * HOUR),
            "running": build.booking(here, owner=bob, start=now - HOUR, end=soon(1)),
            "next": build.booking(there, owner=bob, start=soon(2), team=team),
            "far": build.booking(here, there, owner=alice, start=soon(48)),
            "cancelled": build.booking(here, owner=alice, start=soon(3), state="cancelled"),
            "pending": build.booking(there, owner=bob, start=soon(4), state="pending"),
            "rejected": build.booking(there, owner=bob, start=soon(5), state="rejected"),
        }
        rows["next"].people.add(alice)
        return {"alice": alice, "here": here, "rows": rows}

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ({"mine": "true"}, {"past", "next", "far", "cancelled"}),
            (
                {"mine": "false"},
                {"past", "running", "next", "far", "cancelled", "pending", "rejected"},
            ),
            ({"owner": "bob"}, {"running", "next", "pending", "rejected"}),
            ({"owner": "nobody"}, set()),
            ({"team": "vision"}, {"next"}),
            ({"host": "sim-a"}, {"past", "running", "far", "cancelled"}),
            ({"host": "sim-b", "owner": "alice"}, {"far"}),
            ({"state": "confirmed"}, {"past", "running", "next", "far"}),
            ({"state": "cancelled"}, {"cancelled"}),
            ({"phase": "ended"}, {"past"}),
            ({"phase": "active"}, {"running"}),
            ({"phase": "upcoming"}, {"next", "far"}),
            ({"phase": "pending"}, {"pending"}),
            ({"phase": "cancelled"}, {"cancelled"}),
            ({"phase": "rejected"}, {"rejected"}),
        ],
    )
    def test_each_filter(self, site: dict[str, Any], query: dict, names: set[str]) -> None:
        response = Caller(site["alice"]).get("bookings/", **query)
        expected = {site["rows"][name].pk for name in names}
        assert set(ids(response)) == expected
        phases = {one["phase"] for one in response.json()["results"]}
        if "phase" in query:
            assert phases == {query["phase"]}

    def test_by_device_and_by_time(self, site: dict[str, Any]) -> None:
        caller, rows = Caller(site["alice"]), site["rows"]
        found = ids(caller.get("bookings/", device=site["here"].uuid, phase="upcoming"))
        assert found == [rows["far"].pk]
        span = {"from": rows["next"].start.isoformat(), "to": rows["far"].start.isoformat()}
        assert rows["next"].pk in ids(caller.get("bookings/", **span))
        # Half-open: what ends at `from` or starts at `to` is outside.
        assert not {rows["far"].pk, rows["running"].pk} & set(ids(caller.get("bookings/", **span)))


def test_devices_and_hosts_come_in_pages_too() -> None:
    for name in ("c", "a", "b"):
        host = build.host(name)
        for index in (1, 0):
            build.device(host, index=index)
    caller = Caller(build.user())
    devices = [one for page in all_pages(caller, "devices/", page_size=2) for one in page]
    assert [(one["host"], one["index"]) for one in devices] == [
        (host, index) for host in "abc" for index in (0, 1)
    ]
    hosts = [one for page in all_pages(caller, "hosts/", page_size=1) for one in page]
    assert [(one["name"], one["devices"]) for one in hosts] == [("a", 2), ("b", 2), ("c", 2)]
    assert [one["host"] for one in caller.get("devices/", host="b").json()["results"]] == ["b", "b"]


def test_statements_do_not_grow_with_the_fleet(django_assert_max_num_queries: Any) -> None:
    caller = Caller(build.user())
    caller.get("me")
    for _ in range(20):
        device = build.device()
        build.booking(device, start=clock.now() - HOUR, end=soon(1))
        build.booking(device, start=soon(2))
    with django_assert_max_num_queries(6):
        rows = caller.get("devices/").json()["results"]
    assert len(rows) == 20
    assert all(row["current"] and row["next"] for row in rows)
    # Token, teams, hosts, and which of them are held.
    with django_assert_max_num_queries(4):
        caller.get("hosts/")


def test_a_person_reads_their_own_standing() -> None:
    alice = build.user("alice", time_zone="Asia/Shanghai", locale="zh-hans")
    build.team(alice, name="vision")
    build.team(managers=(alice,), name="audio")
    User.objects.filter(pk=alice.pk).update(email="alice@example.org")
    build.rule("max_devices", 8, name="eight-at-once")
    build.booking(
        build.device(), build.device(), owner=alice, start=clock.now() - HOUR, end=soon(1)
    )
    me = Caller(alice).get("me").json()
    assert me["time_zone"] == "Asia/Shanghai"
    assert me["teams"] == [
        {"name": "audio", "manager": True},
        {"name": "vision", "manager": False},
    ]
    assert me["email"] == "alice@example.org"
    (limit,) = [one for one in me["limits"] if one["rule"] == "eight-at-once"]
    assert (limit["used"], limit["limit"], limit["unit"]) == (2, 8, "devices")
