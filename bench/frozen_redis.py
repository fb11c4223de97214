"""A booking through REST while Redis is frozen (SIGSTOP), beside the same while it lives.

Announcements are hints: losing them may cost a browser a refresh, never a person their time.
"""

import contextlib
import os
import signal
from collections.abc import Iterator

import redis

from bench import fill
from bench.figures import Figure, percentile
from bench.rest import Wishes
from bench.site import Site
from bench.web import Caller, token, web
from tests import servers

ALLOWED_MS = 50


def measure(site: Site) -> Iterator[Figure]:
    people, devices = fill.people(200), fill.devices(64)
    fill.bookings(1_000, on=devices, owners=people, around=fill.today())
    wishes = Wishes(devices)
    alive: list[float] = []
    frozen: list[float] = []
    with servers.redis_server() as url, web(environment={"REDIS_URL": url}) as port:
        caller = Caller(port, token(people[0]))
        _book(caller, wishes, 20)
        for _ in range(site.much(5, 2)):
            alive += _book(caller, wishes, site.much(20, 10))
            with _frozen(url):
                frozen += _book(caller, wishes, site.much(20, 10))
        caller.close()
    for percent in (50, 99):
        value, reference = percentile(frozen, percent), percentile(alive, percent)
        yield Figure(
            name=f"booking through REST while Redis is frozen: p{percent}",
            value=value,
            unit="ms",
            reference_name="Redis alive",
            reference=reference,
            target=f"≤ {ALLOWED_MS} ms more",
            met=value - reference <= ALLOWED_MS,
        )


@contextlib.contextmanager
def _frozen(url: str) -> Iterator[None]:
    connection = redis.Redis.from_url(url)
    pid = connection.info("server")["process_id"]
    connection.close()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _book(caller: Caller, wishes: Wishes, times: int) -> list[float]:
    answers = [caller.post("/api/v1/bookings/", wishes.next()) for _ in range(times)]
    for answer in answers:
        if answer.status != 201:
            raise RuntimeError(f"{answer.status}: {answer.body}")
    return [answer.took_ms for answer in answers]
