"""Who may see and do what with a booking, for every role. Whoever may not is told so."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from reservations import clock
from reservations.models import Booking, Device, User
from tests import build
from tests.api.callers import Caller, is_problem, soon, text

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
ROLES = ["owner", "manager", "teammate", "guest", "stranger", "operator"]
WHOLE = {"owner", "manager", "teammate", "guest", "operator"}


@dataclass
class Site:
    people: dict[str, User]
    device: Device
    upcoming: Booking
    running: Booking

    def caller(self, role: str) -> Caller:
        scopes = "admin" if role == "operator" else "book"
        return Caller(self.people[role], scopes=scopes)


@pytest.fixture
def site() -> Site:
    people = {name: build.user(name) for name in ROLES if name != "operator"}
    people["operator"] = build.operator("operator")
    team = build.team(
        people["owner"], people["teammate"], managers=(people["manager"],), name="vision"
    )
    for person in people.values():
        build.account(person)
    device = build.device(build.host("sim-a"))
    fields: dict[str, Any] = {"owner": people["owner"], "team": team, "purpose": "secret"}
    running = build.booking(device, start=clock.now() - HOUR, end=soon(1), **fields)
    upcoming = build.booking(device, start=soon(2), **fields)
    for one in (running, upcoming):
        one.people.add(people["guest"])
    return Site(people, device, upcoming, running)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("show_owners", [True, False])
def test_who_reads_it_whole(site: Site, settings: Any, role: str, show_owners: bool) -> None:
    settings.SHOW_OWNERS = show_owners
    caller = site.caller(role)
    one = caller.get(f"bookings/{site.upcoming.pk}").json()
    (listed,) = [
        row for row in caller.get("bookings/").json()["results"] if row["id"] == site.upcoming.pk
    ]
    drawn = caller.get(
        "calendar", **{"from": text(clock.now()), "to": text(clock.now() + 24 * HOUR)}
    ).json()["bookings"]
    (compact,) = [row for row in drawn if row["id"] == site.upcoming.pk]
    (device,) = caller.get("devices/").json()["results"]
    for row in (one, listed, compact, device["next"]):
        whole = role in WHOLE
        named = whole or show_owners
        assert row["purpose"] == ("secret" if whole else "")
        assert row["people"] == (["guest"] if whole else [])
        assert row["owner"] == ({"username": "owner", "name": "owner"} if named else None)
        assert row["team"] == ("vision" if named else None)


@pytest.mark.parametrize(
    ("role", "upcoming", "running"),
    [
        ("owner", ["move", "extend", "cancel"], ["move", "extend", "release"]),
        ("operator", ["move", "extend", "cancel"], ["move", "extend", "release"]),
        ("manager", ["cancel"], ["release"]),
        ("teammate", [], []),
        ("guest", [], []),
        ("stranger", [], []),
    ],
)
def test_what_each_may_do_is_said_and_kept(
    site: Site, role: str, upcoming: list[str], running: list[str]
) -> None:
    caller = site.caller(role)
    ahead, now = f"bookings/{site.upcoming.pk}", f"bookings/{site.running.pk}"
    assert caller.get(ahead).json()["can"] == upcoming
    assert caller.get(now).json()["can"] == running
    for allowed, response in (
        ("move" in upcoming, caller.patch(ahead, {"purpose": "mine now"})),
        ("extend" in running, caller.post(f"{now}/extend", {"duration_s": 300})),
        ("release" in running, caller.post(f"{now}/release")),
        ("cancel" in upcoming, caller.delete(ahead)),
    ):
        if allowed:
            assert response.status_code == 200, response.content
        else:
            is_problem(response, 403, "forbidden")


def test_nobody_without_a_credential_gets_anything(site: Site) -> None:
    nobody, one = Caller(None), f"bookings/{site.upcoming.pk}"
    for response in (
        *(nobody.get(path) for path in ("me", "hosts/", "devices/", "bookings/", one)),
        nobody.get("calendar", **{"from": text(soon(0)), "to": text(soon(1))}),
        nobody.get("slots", count=1, duration_s=300),
        nobody.post("bookings/", {"count": 1, "duration_s": 300}),
        nobody.post("bookings/check", {"count": 1, "duration_s": 300}),
        nobody.patch(one, {"purpose": "x"}),
        nobody.delete(one),
        nobody.post(f"{one}/extend", {"duration_s": 300}),
        nobody.post(f"{one}/release"),
    ):
        is_problem(response, 401, "not_authenticated")


@pytest.mark.parametrize("field", [{"owner": "teammate"}, {"kind": "maintenance"}])
def test_only_operators_book_for_others_or_for_maintenance(site: Site, field: dict) -> None:
    body = {"devices": [site.device.uuid], "start": text(soon(5)), "duration_s": 300, **field}
    for role in ("owner", "manager", "stranger"):
        is_problem(site.caller(role).post("bookings/", body), 403, "forbidden")
    made = site.caller("operator").post("bookings/", body)
    assert made.status_code == 201, made.content
    booking = Booking.objects.get(pk=made.json()["id"])
    assert booking.created_by == site.people["operator"]
    assert {"owner": booking.owner.username, "kind": booking.kind}.items() >= field.items()


def test_a_team_that_is_not_mine_is_400(site: Site) -> None:
    body = {"devices": [site.device.uuid], "start": text(soon(5)), "duration_s": 300}
    response = site.caller("stranger").post("bookings/", {**body, "team": "vision"})
    assert "team" in is_problem(response, 400, "invalid")["errors"]
    assert site.caller("owner").post("bookings/", {**body, "team": "vision"}).status_code == 201


def test_what_a_host_says_of_its_health_is_for_operators(site: Site) -> None:
    from reservations.models import HostStatus

    problem = {"code": "drift", "text": "somebody changed the gate"}
    HostStatus.objects.create(host=site.device.host, health=[problem], last_seen=clock.now())
    (seen,) = site.caller("operator").get("hosts/").json()["results"]
    assert seen["health"] == [problem]
    (seen,) = site.caller("owner").get("hosts/").json()["results"]
    assert seen["health"] == []
    assert seen["last_seen"]
