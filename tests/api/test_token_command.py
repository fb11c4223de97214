from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from reservations import clock
from reservations.models import Token
from tests import build
from tests.api.test_auth import bearer

pytestmark = pytest.mark.django_db


def token(*arguments: str) -> str:
    out = StringIO()
    call_command("token", *arguments, stdout=out)
    return out.getvalue().splitlines()[-1]


def test_the_last_line_is_a_token_that_works() -> None:
    build.user("alice")
    secret = token("alice", "--scopes", "book")
    assert bearer(secret).get("me").json()["username"] == "alice"


def test_it_takes_several_scopes_a_name_and_an_end() -> None:
    build.user("alice")
    token("alice", "--scopes", "admin,read", "--name", "nightly", "--expires-days", "7")
    made = Token.objects.get()
    assert (made.name, made.scopes) == ("nightly", ["read", "admin"])
    assert made.expires_at is not None
    assert timedelta(days=6) < made.expires_at - clock.now() <= timedelta(days=7)


@pytest.mark.parametrize(
    "arguments",
    [
        ("nobody",),
        ("alice", "--scopes", "everything"),
        ("alice", "--scopes", ""),
        ("alice", "--expires-days", "-1"),
        ("alice", "--expires-days", "99999999999"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(arguments: tuple[str, ...]) -> None:
    build.user("alice")
    with pytest.raises(CommandError):
        token(*arguments)
