"""Where the site hides names, no answer tells them: not in a row, a refusal, a filter, or a feed."""

from datetime import timedelta
from typing import Any

import pytest

from reservations import clock
from reservations.services.tokens import rotate_calendar_secret
from tests import build
from tests.api.callers import Caller, is_problem, soon, text

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
SECRETS = ("hermione", "Hermione Granger", "time-turner", "harry", "order of the phoenix")


@pytest.fixture
def stranger(settings: Any) -> Caller:
    """Somebody on a site that hides names, with a booking of a hidden person in front of them."""
    settings.SHOW_OWNERS = False
    hidden = build.user("hermione", display_name="Hermione Granger")
    team = build.team(hidden, name="order of the phoenix")
    device = build.device(build.host("sim-a"), uuid="GPU-1")
    for start, end in ((clock.now() - HOUR, soon(1)), (soon(2), soon(3))):
        booking = build.booking(
            device, owner=hidden, team=team, start=start, end=end, purpose="time-turner"
        )
        booking.people.add(build.user(f"harry-{start:%H%M%S}"))
    me = build.user("me")
    build.account(me)
    return Caller(me)


def test_no_answer_holds_a_hidden_name(stranger: Caller) -> None:
    body = {"devices": ["GPU-1"], "start": text(soon(2)), "duration_s": 3600}
    answers = [
        stranger.get("bookings/"),
        stranger.get("bookings/", phase="active"),
        stranger.get("devices/"),
        stranger.get("hosts/"),
        stranger.get("calendar", **{"from": text(clock.now()), "to": text(soon(24))}),
        stranger.post("bookings/check", body),
        stranger.post("bookings/", body),
    ]
    first = answers[0].json()["results"][0]["id"]
    answers += [
        stranger.get(f"bookings/{first}"),
        stranger.delete(f"bookings/{first}"),
        stranger.patch(f"bookings/{first}", {"purpose": "x"}, If_Match='"99"'),
    ]
    is_problem(answers[6], 409, "slot_taken")
    for answer in answers:
        for secret in SECRETS:
            assert secret not in answer.content.decode(), secret
    assert answers[6].json()["blockers"][0]["owner"] is None


@pytest.mark.parametrize("query", [{"owner": "hermione"}, {"team": "order of the phoenix"}])
def test_a_filter_does_not_tell_whose_it_is(stranger: Caller, query: dict, settings: Any) -> None:
    assert stranger.get("bookings/", **query).json()["results"] == []
    settings.SHOW_OWNERS = True
    assert len(stranger.get("bookings/", **query).json()["results"]) == 2


def test_my_own_name_is_never_hidden_from_me(settings: Any) -> None:
    settings.SHOW_OWNERS = False
    me = build.user("me")
    build.booking(owner=me, start=soon(1), purpose="mine")
    (row,) = Caller(me).get("bookings/", owner="me").json()["results"]
    assert (row["owner"]["username"], row["purpose"]) == ("me", "mine")


def test_an_email_is_for_its_owner_alone() -> None:
    other = build.user("other", email="other@example.org")
    build.booking(owner=other, start=soon(1))
    caller = Caller(build.operator(), scopes="admin")
    for path in ("bookings/", "devices/", "hosts/", "me"):
        assert b"other@example.org" not in caller.get(path).content


def test_a_feed_shows_only_its_persons_bookings(stranger: Caller) -> None:
    assert stranger.user is not None
    build.booking(build.device(), owner=stranger.user, start=soon(4), purpose="my own")
    secret = rotate_calendar_secret(stranger.user)
    feed = stranger.client.get(f"/calendar/{secret}.ics").content.decode()
    assert "my own" in feed
    for hidden in SECRETS:
        assert hidden not in feed
