"""Fifty people want the same slot at the same moment, twenty slots in turn: exactly one may get it.

With the production set-up (four web processes, PostgreSQL), with the demo's (one, SQLite), and once more
with locks and constraint taken away, which shows that the crowd is real.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import connection

from bench import fill
from bench.figures import Figure, percentile
from bench.site import ROOT, Site, migrate
from bench.web import Answer, Caller, web

CROWD = 50
HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Crowd:
    """A token of each person, and the UUIDs of what they want."""

    secrets: list[str]
    devices: list[str]


@dataclass(frozen=True)
class Contest:
    """All answers, slot by slot."""

    slots: list[list[Answer]]

    @property
    def answers(self) -> list[Answer]:
        return [answer for slot in self.slots for answer in slot]

    @property
    def winners(self) -> list[int]:
        return [sum(answer.status == 201 for answer in slot) for slot in self.slots]

    @property
    def explained(self) -> int:
        """How many losers were told who stands in the way, and what is free instead."""
        return sum(
            answer.status == 409 and bool(answer.body["blockers"] and answer.body["alternatives"])
            for answer in self.answers
        )

    @property
    def failed(self) -> int:
        """Answers that are neither: a 500, a deadlock, "busy"."""
        return sum(answer.status not in {201, 409} for answer in self.answers)

    @property
    def p99_ms(self) -> float:
        return percentile([answer.took_ms for answer in self.answers], 99)


def measure(site: Site) -> Iterator[Figure]:
    slots = site.much(20, 4)
    production, demo = dict(os.environ), _demo_environment(site.folder)
    migrate(demo)
    crowd = _crowd(production)
    with web(processes=4) as port:
        guarded = _contest(port, crowd, slots)
    fill.empty()
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE reservations_allocation DROP CONSTRAINT allocation_no_overlap")
    with web("bench.without_guards", processes=4) as port:
        unguarded = _contest(port, crowd, slots)
    crowd = _crowd(demo)
    with web(environment=demo) as port:
        small = _contest(port, crowd, slots)
    yield from _figures("4 web processes, PostgreSQL", guarded, unguarded)
    yield from _figures("demo set-up (1 web process, SQLite)", small, unguarded)


def _demo_environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "DATABASE_URL": f"sqlite:///{folder / 'contested.sqlite3'}"}


def _crowd(environment: dict[str, str]) -> Crowd:
    command = [sys.executable, "-m", "bench.crowd", str(CROWD), "4"]
    made = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    return Crowd(**json.loads(made.stdout))


def _contest(port: int, crowd: Crowd, slots: int) -> Contest:
    first = fill.today() + timedelta(days=1)
    start_line = threading.Barrier(CROWD)
    callers = [Caller(port, secret) for secret in crowd.secrets]
    for caller in callers:
        caller.connect()
    found = []
    with ThreadPoolExecutor(CROWD) as pool:
        for number in range(slots):
            body = _wish(crowd.devices[number % len(crowd.devices)], first + number * HOUR)
            runs = [pool.submit(_want, caller, body, start_line) for caller in callers]
            found.append([run.result() for run in runs])
    for caller in callers:
        caller.close()
    return Contest(found)


def _want(caller: Caller, body: dict[str, Any], start_line: threading.Barrier) -> Answer:
    start_line.wait()
    return caller.post("/api/v1/bookings/", body)


def _wish(device: str, start: datetime) -> dict[str, Any]:
    return {"devices": [device], "start": start.isoformat(), "end": (start + HOUR).isoformat()}


def _figures(where: str, guarded: Contest, unguarded: Contest) -> Iterator[Figure]:
    what = f"{CROWD} at once × {len(guarded.slots)} slots, {where}"
    without = "guards off, PostgreSQL"
    losers = len(guarded.answers) - len(guarded.slots)
    one_each = set(guarded.winners) == {1}
    yield Figure(
        name=f"{what}: most winners of a slot (fewest: {min(guarded.winners)})",
        value=max(guarded.winners),
        unit="",
        reference_name=f"{without}: {sum(one > 1 for one in unguarded.winners)} slots double-booked",
        reference=max(unguarded.winners),
        target="exactly 1",
        met=one_each and max(unguarded.winners) > 1,
    )
    yield Figure(
        name=f"{what}: losers told 409 with blockers and alternatives",
        value=guarded.explained,
        unit="",
        reference_name="all losers",
        reference=losers,
        target="all",
        met=guarded.explained == losers,
    )
    yield Figure(
        name=f"{what}: other answers (500, deadlock, busy)",
        value=guarded.failed,
        unit="",
        reference_name=without,
        reference=unguarded.failed,
        target="0",
        met=guarded.failed == 0,
    )
    yield Figure(
        name=f"{what}: p99 of all answers",
        value=guarded.p99_ms,
        unit="ms",
        reference_name=without,
        reference=unguarded.p99_ms,
        target="—",
        met=True,
    )
