"""Whether the parts of the control plane live. Answered by themselves, never by a guess."""

from datetime import datetime
from typing import Any

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from redis.backoff import NoBackoff
from redis.retry import Retry

from reservations import clock
from reservations.selectors import fleet
from reservations.services import pulses

_LIMIT_S = 0.5
_PARTS = (pulses.CONTROL, pulses.BEAT)


def livez(request: HttpRequest) -> HttpResponse:
    """200 while this process answers at all."""
    return HttpResponse("ok\n", content_type="text/plain")


def healthz(request: HttpRequest) -> HttpResponse:
    """200 if everything that Berth needs is fresh, else 503 with what is not.

    Silent hosts and those that have never called are named, but they are no reason to take the control plane for broken.
    """
    now = clock.now()
    parts = {"web": "ok", **_database(now), "redis": _redis()}
    healthy = all(state == "ok" for state in parts.values())
    answers = parts["database"] == "ok"
    silent = list(fleet.silent_hosts()) if answers else []
    unheard = fleet.unheard_hosts() if answers else []
    words = {(True, False): "ok", (True, True): "degraded"}
    status = words.get((healthy, bool(silent)), "down")
    hosts = {"silent_hosts": silent, "never_heard_of_hosts": unheard}
    body: dict[str, Any] = {"status": status, **parts, **hosts}
    return JsonResponse(body, status=200 if healthy else 503)


def _database(now: datetime) -> dict[str, str]:
    try:
        stale = pulses.stale(_PARTS, now=now)
    except DatabaseError as error:
        connection.close()
        unknown = dict.fromkeys(_PARTS, "unknown")
        return {"database": f"does not answer: {type(error).__name__}", **unknown}
    found = {"database": "ok"}
    for name in _PARTS:
        found[name] = "ok" if name not in stale else _last_seen(stale[name])
    return found


def _last_seen(at: datetime | None) -> str:
    return f"not seen since {at:%Y-%m-%d %H:%M:%S} UTC" if at else "never seen"


def _redis() -> str:
    client = redis.Redis.from_url(
        settings.REDIS_URL,
        socket_timeout=_LIMIT_S,
        socket_connect_timeout=_LIMIT_S,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        client.ping()
    except redis.RedisError as error:
        return f"does not answer: {type(error).__name__}"
    finally:
        client.close()
    return "ok"
