"""The iCalendar feed: its address is the secret, and its lines hold whatever people write."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from icalendar import Calendar

from reservations import clock
from reservations.models import User
from reservations.services.tokens import rotate_calendar_secret
from tests import build
from tests.api.callers import is_problem, soon
from tests.build import NOON

pytestmark = pytest.mark.django_db


def feed(user: User) -> Any:
    response = Client().get(f"/calendar/{rotate_calendar_secret(user)}.ics")
    assert response.status_code == 200
    return response


def test_it_holds_own_and_shared_bookings_with_their_times(settings: Any) -> None:
    settings.BERTH_URL = "https://berth.example"
    alice, device = build.user("alice"), build.device(build.host("sim-a"), index=3, model="A100")
    start = soon(1)
    mine = build.booking(device, owner=alice, start=start, hours=2, purpose="train")
    shared = build.booking(device, start=start + timedelta(hours=3), state="pending")
    shared.people.add(alice)
    build.booking(device, start=start + timedelta(hours=5))
    build.booking(device, owner=alice, start=start, state="cancelled")
    build.booking(device, owner=alice, start=clock.now() - timedelta(days=200))
    response = feed(alice)
    assert response["Content-Type"] == "text/calendar; charset=utf-8"
    events = Calendar.from_ical(response.content).walk("VEVENT")
    assert [str(event["status"]) for event in events] == ["CONFIRMED", "TENTATIVE"]
    first = events[0]
    assert (first.decoded("dtstart"), first.decoded("dtend")) == (mine.start, mine.end)
    assert str(first["uid"]) == f"booking-{mine.pk}@berth.example"
    assert str(first["summary"]) == "A100 · 3"
    assert str(first["location"]) == "sim-a"
    assert str(first["description"]) == "train"
    assert str(first["url"]) == f"https://berth.example/bookings/{mine.pk}/"


def test_a_purpose_cannot_become_a_line_of_its_own() -> None:
    alice = build.user("alice")
    purpose = 'x\r\nATTENDEE:mailto:eve@example.org\nBEGIN:VALARM\r;,:\\"\u2028\x00\x07 end'
    build.booking(build.device(), owner=alice, start=soon(1), purpose=purpose.replace("\x00", ""))
    body = feed(alice).content
    assert b"\r\nATTENDEE" not in body
    assert b"\r\nBEGIN:VALARM" not in body
    assert rb"\;\,:\\" in body
    (event,) = Calendar.from_ical(body).walk("VEVENT")
    assert "eve@example.org" in event["description"]
    assert len(event.subcomponents) == 0
    bare = body.replace(b"\r\n", b"")
    assert b"\r" not in bare
    assert b"\n" not in bare
    assert b"\x07" not in bare


def test_lines_fold_at_75_octets_between_whole_characters() -> None:
    purpose = ("训练大模型 🚀 naïve, " * 20)[:200]
    alice = build.user("alice", display_name="x")
    build.booking(build.device(model="显卡" * 60), owner=alice, start=soon(1), purpose=purpose)
    body = feed(alice).content
    lines = body.split(b"\r\n")
    assert max(map(len, lines)) <= 75
    for line in lines:
        line.decode()  # no character was cut in two
    (event,) = Calendar.from_ical(body).walk("VEVENT")
    assert str(event["description"]) == purpose.strip() or str(event["description"]) == purpose


def test_rotating_the_secret_kills_the_old_address() -> None:
    alice = build.user("alice")
    old, new = rotate_calendar_secret(alice), rotate_calendar_secret(alice)
    is_problem(Client().get(f"/calendar/{old}.ics"), 404, "not_found")
    assert Client().get(f"/calendar/{new}.ics").status_code == 200
    alice.refresh_from_db()
    assert new.encode() not in bytes(alice.calendar_digest or b"")


@pytest.mark.parametrize("secret", ["x", "%00", "é", "a" * 4000, "None"])
def test_an_unknown_address_is_404(secret: str) -> None:
    build.user("somebody without a secret")
    is_problem(Client().get(f"/calendar/{secret}.ics"), 404, "not_found")


@pytest.mark.parametrize("change", [{"is_active": False}, {"expires_at": NOON.replace(2020)}])
def test_the_feed_of_somebody_who_left_is_404(change: dict[str, Any]) -> None:
    alice = build.user("alice")
    secret = rotate_calendar_secret(alice)
    User.objects.filter(pk=alice.pk).update(**change)
    is_problem(Client().get(f"/calendar/{secret}.ics"), 404, "not_found")
