"""What only a real server shows: bodies without a length, and bodies that are too long."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from reservations import clock
from reservations.models import User
from reservations.services.actors import BERTH
from reservations.services.tokens import issue_token
from tests import build, web
from tests.api.callers import soon, text

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with web.web_server(tmp_path / "web.log") as address:
        yield address.removeprefix("http://")


def post(address: str, user: User, chunks: list[bytes]) -> tuple[int, dict]:
    _, secret = issue_token(user, name="t", scopes=["book"], actor=BERTH, now=clock.now())
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request(
        "POST",
        "/api/v1/bookings/",
        body=iter(chunks),
        headers={"Authorization": f"Bearer {secret}", "Content-Type": "application/json"},
        encode_chunked=True,
    )
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body


def test_a_body_sent_in_chunks_is_read_and_limited_like_any_other(
    address: str, alice: User
) -> None:
    device = build.device()
    wish = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 300}
    raw = json.dumps(wish).encode()
    status, body = post(address, alice, [raw[:20], raw[20:]])
    assert (status, body.get("phase")) == (201, "upcoming"), body
    status, body = post(address, alice, [b'{"purpose": "', b"x" * 2_000_000, b'"}'])
    assert (status, body["code"]) == (413, "too_large")
