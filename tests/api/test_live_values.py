"""Devices carry what their hosts last said of them, as far as there is anything to tell."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from reservations import clock, livestore
from tests import build
from tests.api.callers import Caller

pytestmark = pytest.mark.django_db


def live(uuid: str, **values: Any) -> dict[str, Any]:
    verdict = {"code": "in_use", "text": "In use by Alice", "since": None, "who": ["Alice"]}
    return {
        "uuid": uuid,
        "at": "2027-03-01T12:00:00Z",
        "health": "ok",
        "utilization_percent": 87.5,
        "memory_used_bytes": 7,
        "memory_total_bytes": 80,
        "temperature_c": 61.0,
        "power_w": None,
        "processes": [{"pid": 1, "owner": "alice", "memory_bytes": 7}],
        "verdict": verdict,
        **values,
    }


@pytest.fixture(autouse=True)
def empty_redis(redis_url: str) -> Iterator[None]:
    livestore.breaker.reset()
    yield
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()


def test_the_newest_reading_and_its_verdict_are_told() -> None:
    host = build.host()
    measured, silent = build.device(host, index=0), build.device(host, index=1)
    livestore.publish([live(measured.uuid)], now=clock.now())
    first, second = Caller(build.user()).get("devices/").json()["results"]
    assert first["verdict"]["code"] == "in_use"
    assert first["sample"] == {
        "at": "2027-03-01T12:00:00Z",
        "health": "ok",
        "utilization_percent": 87.5,
        "memory_used_bytes": 7,
        "memory_total_bytes": 80,
        "temperature_c": 61.0,
        "power_w": None,
    }
    assert (second["uuid"], second["sample"], second["verdict"]) == (silent.uuid, None, None)
