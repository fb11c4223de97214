"""Holding hosts from a script: for operators with the scope for it, told in the host's row."""

from datetime import timedelta

import pytest

from reservations import clock
from reservations.selectors import holds
from tests import build
from tests.api.callers import Caller, is_problem

pytestmark = pytest.mark.django_db
BODY = {"reason": "new driver", "duration_s": 3600}


@pytest.fixture
def admin():
    build.host("gpu1")
    return Caller(build.operator(), scopes="admin")


def test_an_operator_holds_and_resumes(admin):
    row = admin.post("hosts/gpu1/hold", BODY).json()
    assert row["hold"]["reason"] == "new driver"
    (listed,) = Caller(build.user()).get("hosts/").json()["results"]
    assert listed["hold"] == row["hold"]
    (held,) = holds.in_force(now=clock.now())
    assert held.until - held.since == timedelta(hours=1)
    for _ in range(2):
        assert admin.post("hosts/gpu1/resume").json()["hold"] is None


@pytest.mark.parametrize("verb", ["hold", "resume"])
@pytest.mark.parametrize(
    ("operator", "scopes"), [(False, "book"), (False, "admin"), (True, "book"), (True, "read")]
)
def test_nobody_else_does_nor_an_operators_lesser_token(verb, operator, scopes):
    build.host("gpu1")
    caller = Caller(build.user(is_operator=operator), scopes=scopes)
    is_problem(
        caller.post(f"hosts/gpu1/{verb}", BODY if verb == "hold" else None), 403, "forbidden"
    )
    assert not holds.in_force(now=clock.now()).exists()


@pytest.mark.parametrize("verb", ["hold", "resume"])
def test_a_host_that_is_none_is_404(admin, verb):
    is_problem(admin.post(f"hosts/gpu9/{verb}", BODY if verb == "hold" else None), 404, "not_found")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"reason": ""}, "reason"),
        ({"duration_s": 8 * 86_400}, "duration_s"),
        ({"mode": "x"}, "mode"),
    ],
)
def test_a_hold_that_makes_no_sense_is_refused(admin, wrong, field):
    body = is_problem(admin.post("hosts/gpu1/hold", {**BODY, **wrong}), 400, "invalid")
    assert list(body["errors"]) == [field]
