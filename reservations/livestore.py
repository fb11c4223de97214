"""What devices do right now, in Redis: the newest value of each and ten minutes behind it.

The only place that knows these keys. Redis is never waited for: what it does not take at once is lost,
the next sample replaces it, and after a failure nobody asks again for a few seconds.
"""

import logging
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final

import msgspec
import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from reservations.core.wire import Sample

logger = logging.getLogger(__name__)

# Every tick of a host is published here, as the text that browsers get.
CHANNEL: Final = "berth:live"
RING: Final = timedelta(minutes=10)
# A page that is looked at says so again before this has passed.
WATCHED_S: Final = 15
_LATEST: Final = "berth:live:latest"
_SAMPLES: Final = "berth:live:samples"
_RING: Final = "berth:live:ring:"
_WATCHED: Final = "berth:live:watched"
# One reading a second, and a few to spare.
_RING_LENGTH: Final = 620
_LIMIT_S: Final = 0.25
_REST_S: Final = 5.0


class _Breaker:
    """After a failure, Redis is left alone for a while: waiting again would cost the same again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed_until_s = 0.0

    def allows(self) -> bool:
        with self._lock:
            return time.monotonic() >= self._closed_until_s

    def trip(self) -> None:
        with self._lock:
            self._closed_until_s = time.monotonic() + _REST_S

    def reset(self) -> None:
        with self._lock:
            self._closed_until_s = 0.0


breaker = _Breaker()


def publish(
    devices: Sequence[dict[str, Any]],
    *,
    now: datetime,
    gone: Sequence[str] = (),
    samples: Sequence[Sample] = (),
) -> bool:
    """Store and announce one tick of a host; says whether somebody is watching.

    ``devices`` are live devices without their ring, ``gone`` those of the host that are no longer
    shown. ``samples`` are the readings themselves, people by their Unix names: for operators alone.
    Takes 0.5 s at most, whatever state Redis is in.
    """
    if not devices:
        return watched()
    text = msgspec.json.encode({"type": "devices", "devices": devices})
    latest = {device["uuid"]: msgspec.json.encode(device) for device in devices}

    def send(pipe: "redis.client.Pipeline") -> None:
        pipe.exists(_WATCHED)
        pipe.publish(CHANNEL, text)
        pipe.hset(_LATEST, mapping=latest)
        if samples:
            pipe.hset(_SAMPLES, mapping={one.uuid: msgspec.json.encode(one) for one in samples})
        if gone:
            pipe.hdel(_LATEST, *gone)
            pipe.hdel(_SAMPLES, *gone)
        for device in devices:
            key = _RING + device["uuid"]
            point = (int(now.timestamp()), device["utilization_percent"])
            pipe.rpush(key, msgspec.json.encode(point))
            pipe.ltrim(key, -_RING_LENGTH, -1)
            pipe.expire(key, RING)

    answers = _try(send)
    return bool(answers and answers[0])


def snapshot(*, now: datetime) -> list[dict[str, Any]]:
    """Every device's newest value with its ring, for a page that has just opened; [] without Redis."""
    answers = _try(lambda pipe: pipe.hvals(_LATEST))
    devices = (
        [msgspec.json.decode(text, type=dict[str, Any]) for text in answers[0]] if answers else []
    )
    rings = _try(lambda pipe: [pipe.lrange(_RING + one["uuid"], 0, -1) for one in devices])
    oldest = int((now - RING).timestamp())
    for device, ring in zip(devices, rings or [[] for _ in devices], strict=True):
        points = [msgspec.json.decode(point, type=list[Any]) for point in ring]
        device["ring"] = [point for point in points if point[0] >= oldest]
    return devices


def latest(uuids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The newest value of these devices, where there is one."""
    answers = _try(lambda pipe: pipe.hmget(_LATEST, list(uuids))) if uuids else None
    found = zip(uuids, answers[0], strict=True) if answers else ()
    return {uuid: msgspec.json.decode(text, type=dict[str, Any]) for uuid, text in found if text}


def samples(uuids: Sequence[str]) -> dict[str, Sample]:
    """The newest reading of these devices, where there is one, however old."""
    answers = _try(lambda pipe: pipe.hmget(_SAMPLES, list(uuids))) if uuids else None
    found = zip(uuids, answers[0], strict=True) if answers else ()
    return {uuid: msgspec.json.decode(text, type=Sample) for uuid, text in found if text}


def mark_watched() -> None:
    """Somebody looks at live pages: hosts sample once a second for the next 15 s."""
    _try(lambda pipe: pipe.set(_WATCHED, 1, ex=WATCHED_S))


def watched() -> bool:
    answers = _try(lambda pipe: pipe.exists(_WATCHED))
    return bool(answers and answers[0])


@cache
def _client() -> redis.Redis:
    return redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_LIMIT_S,
        socket_connect_timeout=_LIMIT_S,
        retry=Retry(NoBackoff(), 0),
    )


def _try(fill: Any) -> list[Any] | None:
    """The answers to a pipeline, in one round trip; None if Redis does not take it."""
    if not breaker.allows():
        return None
    try:
        with _client().pipeline(transaction=False) as pipe:
            fill(pipe)
            answers: list[Any] = pipe.execute()
    except redis.RedisError as error:
        breaker.trip()
        logger.warning("live values not stored or read: %s", type(error).__name__)
        return None
    return answers
