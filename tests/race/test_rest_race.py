"""Fifty people want one slot at the same instant, through a real server with several processes."""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import urllib3

from reservations import clock
from reservations.models import Allocation, Booking
from reservations.services.actors import BERTH
from reservations.services.tokens import issue_token
from tests import build, web
from tests.api.callers import soon, text

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.db_race,
    pytest.mark.slow,
    pytest.mark.timeout(240),
]

PEOPLE = 50
SLOTS = int(os.environ.get("BERTH_RACE_SLOTS", "6"))


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    log = tmp_path / "web.log"
    with web.web_server(log, workers=4) as address:
        yield address
    said = log.read_text()
    assert "Traceback" not in said, said[-3000:]
    assert "deadlock" not in said, said[-3000:]


def ask(
    address: str, tokens: list[str], body: dict[str, Any], **headers: str
) -> list[tuple[int, bytes, Any]]:
    """What each token hears when all ask for the same at the same time."""
    start = threading.Barrier(len(tokens))

    def one(token: str) -> tuple[int, bytes, Any]:
        with urllib3.PoolManager(retries=False, timeout=60) as pool:
            start.wait(30)
            answer = pool.request(
                "POST",
                f"{address}/api/v1/bookings/",
                body=json.dumps(body),
                headers={
                    "Authorization": f"Bearer {token}",
                    "Content-Type": "application/json",
                    **headers,
                },
            )
        return answer.status, answer.data, answer.headers

    with ThreadPoolExecutor(len(tokens)) as threads:
        return list(threads.map(one, tokens))


def tokens_of(*people: Any) -> list[str]:
    return [
        issue_token(person, name="race", scopes=["book"], actor=BERTH, now=clock.now())[1]
        for person in people
    ]


def test_a_contested_slot_has_one_winner_and_the_others_hear_why(address: str) -> None:
    device = build.device()
    build.device(device.host)
    people = [build.user() for _ in range(PEOPLE)]
    for person in people:
        build.account(person)
    tokens = tokens_of(*people)
    first = soon(2)
    for slot in range(SLOTS):
        start = first + slot * timedelta(hours=1)
        body = {"devices": [device.uuid], "start": text(start), "duration_s": 3600}
        answers = ask(address, tokens, body)
        assert Counter(status for status, _, _ in answers) == {201: 1, 409: PEOPLE - 1}
        for status, raw, _ in answers:
            if status == 409:
                problem = json.loads(raw)
                assert problem["code"] == "slot_taken"
                assert [one["device"] for one in problem["blockers"]] == [device.uuid]
                assert problem["blockers"][0]["owner"]
                assert problem["alternatives"]
    assert Booking.objects.count() == Allocation.objects.filter(holds=True).count() == SLOTS


def test_one_key_sent_many_times_at_once_books_once(address: str) -> None:
    device, person = build.device(), build.user()
    build.account(person)
    (token,) = tokens_of(person)
    body = {"devices": [device.uuid], "start": text(soon(2)), "duration_s": 3600}
    answers = ask(address, [token] * 20, body, **{"Idempotency-Key": "the-same"})
    assert Counter(status for status, _, _ in answers) == {201: 20}
    assert len({raw for _, raw, _ in answers}) == 1
    replayed = [headers for _, _, headers in answers if "Idempotency-Replayed" in headers]
    assert len(replayed) == 19
    assert Booking.objects.count() == 1
