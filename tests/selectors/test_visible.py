"""Who sees what of a booking: one place masks for every door."""

from datetime import timedelta

import pytest

from reservations.selectors import bookings, visible
from reservations.selectors.visible import Viewer
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = NOON - HOUR


@pytest.fixture
def scene():
    """A booking of alice for her team and for bob, and everybody who could look at it."""
    people = {name: build.person(name) for name in ("alice", "bob", "mate", "manager", "stranger")}
    team = build.team(people["alice"], people["mate"], managers=(people["manager"],), name="vision")
    booking = build.booking(
        build.device(build.host("sim-a"), index=3, model="A100 80GB"),
        owner=people["alice"],
        team=team,
        purpose="thesis",
    )
    booking.people.add(people["bob"])
    people["operator"] = build.operator("operator")
    return bookings.one(booking.pk), people


@pytest.mark.parametrize("who", ["alice", "bob", "mate", "manager", "operator"])
def test_those_it_concerns_see_it_whole(scene, who, settings):
    settings.SHOW_OWNERS = False
    booking, people = scene
    row = visible.calendar_row(booking, viewer=Viewer.of(people[who]))
    assert row["owner"] == {"username": "alice", "name": "alice"}
    assert (row["people"], row["team"], row["purpose"]) == (["bob"], "vision", "thesis")


@pytest.mark.parametrize(("show", "owner"), [(True, "alice"), (False, None)])
def test_strangers_see_that_it_is_taken_and_by_whom_only_if_the_site_shows_it(
    scene, settings, show, owner
):
    settings.SHOW_OWNERS = show
    booking, people = scene
    for viewer in (Viewer.of(people["stranger"]), Viewer(None, is_operator=False)):
        row = visible.calendar_row(booking, viewer=viewer)
        assert (row["owner"] or {}).get("username") == owner
        assert row["team"] == ("vision" if show else None)
        assert (row["people"], row["purpose"]) == ([], "")
        assert (row["start"], row["end"]) == ("2027-03-01T12:00:00Z", "2027-03-01T13:00:00Z")


@pytest.mark.parametrize(
    ("who", "can"),
    [
        ("alice", ["move", "extend", "cancel"]),
        ("operator", ["move", "extend", "cancel"]),
        ("manager", ["cancel"]),
        ("mate", []),
        ("bob", []),
        ("stranger", []),
    ],
)
def test_everybody_is_told_what_they_can_do_with_it(scene, who, can):
    booking, people = scene
    row = visible.booking_row(booking, viewer=Viewer.of(people[who]), now=NOW)
    assert row["can"] == can


def test_the_full_row_names_devices_as_people_know_them(scene):
    booking, people = scene
    row = visible.booking_row(booking, viewer=Viewer.of(people["alice"]), now=NOON)
    device = booking.allocations.all()[0].device
    assert row["devices"] == [
        {"uuid": device.uuid, "host": "sim-a", "index": 3, "name": "A100 80GB · 3"}
    ]
    assert (row["phase"], row["planned_end"]) == ("active", "2027-03-01T13:00:00Z")


def test_a_manager_of_another_team_is_a_stranger(scene):
    booking, _ = scene
    other = build.person()
    build.team(managers=(other,))
    row = visible.booking_row(booking, viewer=Viewer.of(other), now=NOW)
    assert (row["purpose"], row["can"]) == ("", [])
