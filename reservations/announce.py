"""The only door to Channels and to the broker. Always on commit, and never in the way.

A frozen Redis held a direct send for more than 25 s, so announcing only appends to a bounded
in-process queue that one thread drains, half a second at most for each message and without retries.
What it carries are hints: a browser that missed one refetches, an agent asks at its next heartbeat.
"""

import asyncio
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, partial
from typing import Any

from celery import Celery
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import transaction
from kombu import Connection

from reservations import clock
from reservations.core import wire
from reservations.models import Booking, Membership
from reservations.selectors import holds, visible

logger = logging.getLogger(__name__)

# The group of all open calendars.
CALENDAR = "calendar"
LIMIT_S = 0.5
QUEUE_LENGTH = 2_000
_NUDGE_EXPIRES_S = 60
# One host is nudged at once, and then at most so often: a nudge stands for all that came before it.
NUDGE_EVERY_S = 0.1

Letter = Callable[[asyncio.Runner], None]


class Courier:
    """Delivers letters one after the other in its own thread; the oldest is dropped when too many wait."""

    def __init__(self) -> None:
        self._start_anew()
        # Threads do not survive a fork, and a lock held in the parent would stay held in the child.
        os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        self._letters: deque[Letter] = deque(maxlen=QUEUE_LENGTH)
        # By what they are about: when each is due, and when the last one went out.
        self._hints: dict[str, tuple[float, Letter]] = {}
        self._hinted: dict[str, float] = {}
        self._posted = threading.Condition()
        self._thread: threading.Thread | None = None
        self._delivering = False

    def post(self, letter: Letter) -> None:
        """Returns at once, whatever state Redis is in."""
        with self._posted:
            self._letters.append(letter)
            self._wake()

    def hint(self, about: str, letter: Letter, *, every_s: float) -> None:
        """Like ``post``, for letters that stand for each other: one that waits is enough."""
        with self._posted:
            if about in self._hints:
                return
            due = max(time.monotonic(), self._hinted.get(about, 0.0) + every_s)
            self._hints[about] = (due, letter)
            self._wake()

    def _wake(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._deliver, name="announce", daemon=True)
            self._thread.start()
        self._posted.notify_all()

    def wait_until_idle(self, limit_s: float) -> bool:
        """Whether every letter was delivered or given up within the limit."""
        with self._posted:
            return self._posted.wait_for(
                lambda: not (self._letters or self._hints or self._delivering), limit_s
            )

    def _deliver(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                with self._posted:
                    self._delivering = False
                    self._posted.notify_all()
                    letter = self._next()
                    self._delivering = True
                try:
                    letter(runner)
                except Exception as error:  # noqa: BLE001 -- the loop's edge: a hint was lost
                    logger.warning("not announced: %s: %s", type(error).__name__, error)

    def _next(self) -> Letter:
        """The next letter to deliver; waits for one. The lock is held by the caller."""
        while True:
            now = time.monotonic()
            for about, (due, letter) in self._hints.items():
                if due <= now:
                    del self._hints[about]
                    self._hinted[about] = now
                    return letter
            if self._letters:
                return self._letters.popleft()
            soonest = min((due for due, _ in self._hints.values()), default=None)
            self._posted.wait(None if soonest is None else soonest - now)


courier = Courier()


def booking_changed(booking: Booking) -> None:
    """Tell, once this is committed, every open calendar: one message, and who may read the booking whole.

    The web process masks it for all others before it leaves the house.
    """
    row = visible.calendar_row(booking, viewer=visible.EVERYTHING)
    message = {"type": "booking.changed", "row": row, "readers": _readers(booking)}
    transaction.on_commit(lambda: _to_group(CALENDAR, message), robust=True)


def hosts_changed() -> None:
    """Tell, once this is committed, every open page which hosts are held now."""

    def send() -> None:
        row = {"holds": holds.rows(now=clock.now())}
        _to_group(CALENDAR, {"type": "hosts.changed", "row": row})

    transaction.on_commit(send, robust=True)


def notice(person: int, row: dict[str, Any]) -> None:
    """Show a notice, once this is committed, to one person wherever they have a page open."""
    message = {"type": "notice.new", "row": row}
    transaction.on_commit(lambda: _to_group(f"person.{person}", message), robust=True)


def nudge(host_names: Iterable[str]) -> None:
    """Tell hosts, once this is committed, that their plan may have changed."""
    names = sorted(set(host_names))

    def send() -> None:
        for name in names:
            courier.hint(f"host {name}", partial(_nudge, name), every_s=NUDGE_EVERY_S)

    transaction.on_commit(send, robust=True)


def _readers(booking: Booking) -> list[int]:
    """Who may read the booking whole, besides operators: owner, people, teammates."""
    people = {booking.owner_id, *(one.pk for one in booking.people.all())}
    if booking.team_id is not None:
        members = Membership.objects.filter(team_id=booking.team_id)
        people.update(members.values_list("user_id", flat=True))
    return sorted(people)


def _to_group(group: str, message: dict[str, Any]) -> None:
    async def send() -> None:
        layer = get_channel_layer()
        if layer is not None:
            await layer.group_send(group, message)

    courier.post(lambda runner: runner.run(asyncio.wait_for(send(), LIMIT_S)))


@cache
def _broker() -> Celery:
    return Celery("announce", broker=settings.REDIS_URL, set_as_current=False)


@lru_cache(maxsize=64)
def _line_to(host: str) -> Connection:
    """A connection that is kept: opening one costs ten times what a nudge does."""
    return _broker().connection_for_write(
        transport_options={
            # Each host's broker user may touch only keys with this prefix.
            "global_keyprefix": wire.host_key_prefix(host),
            "socket_timeout": LIMIT_S,
            "socket_connect_timeout": LIMIT_S,
            "max_retries": 0,
        }
    )


os.register_at_fork(after_in_child=_line_to.cache_clear)


def _nudge(host: str, _: asyncio.Runner) -> None:
    line = _line_to(host)
    try:
        _broker().send_task(
            wire.NUDGE,
            queue=wire.host_queue(host),
            connection=line,
            retry=False,
            ignore_result=True,
            expires=_NUDGE_EXPIRES_S,
        )
    except Exception:
        # Half an answer may be left on it.
        _line_to.cache_clear()
        line.release()
        raise
