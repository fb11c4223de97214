"""Too many requests in a minute are answered 429, with the time after which to come again."""

from typing import Any

import pytest
from django.test import Client

from tests import build
from tests.api.callers import Caller, is_problem

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute that does not turn while a test counts."""
    monkeypatch.setattr("reservations.api.throttling.clock.now", lambda: build.NOON)


def test_a_person_is_counted_over_all_their_tokens(settings: Any) -> None:
    settings.API_REQUESTS_PER_MINUTE = 3
    alice = build.user()
    callers = [Caller(alice), Caller(alice)]
    for number in range(3):
        assert callers[number % 2].get("hosts/").status_code == 200
    response = callers[0].get("hosts/")
    is_problem(response, 429, "throttled")
    assert 1 <= int(response["Retry-After"]) <= 61
    assert Caller(build.user()).get("hosts/").status_code == 200


def test_without_a_valid_credential_the_address_counts(settings: Any) -> None:
    settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 2
    guess = {"headers": {"Authorization": "Bearer berth_guess"}}
    is_problem(Client().get("/api/v1/me", **guess), 401, "not_authenticated")
    is_problem(Client().get("/api/v1/me"), 401, "not_authenticated")
    is_problem(Client().get("/api/v1/me", **guess), 429, "throttled")
    is_problem(Client().get("/calendar/guess.ics"), 429, "throttled")
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    is_problem(elsewhere.get("/api/v1/me"), 401, "not_authenticated")
    assert Caller(build.user()).get("me").status_code == 200


def test_a_claimed_address_does_not_count(settings: Any) -> None:
    settings.API_ANONYMOUS_REQUESTS_PER_MINUTE = 1
    for number, code in ((1, "not_authenticated"), (2, "throttled")):
        claimed = {"headers": {"X-Forwarded-For": f"192.0.2.{number}"}}
        assert Client().get("/api/v1/me", **claimed).json()["code"] == code
