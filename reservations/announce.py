"""The only door to Channels and to the broker. Always on commit, and never in the way.

A frozen Redis held a direct send for more than 25 s, so announcing only appends to a bounded
in-process queue that one thread drains, half a second at most for each message and without retries.
What it carries are hints: a browser that missed one refetches, an agent asks at its next heartbeat.
"""

import asyncio
import logging
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

from celery import Celery
from channels.layers import get_channel_layer
from django.conf import settings
from django.db import transaction
from kombu import Connection

from reservations.core import wire
from reservations.models import Booking, Membership
from reservations.selectors import visible

logger = logging.getLogger(__name__)

LIMIT_S = 0.5
QUEUE_LENGTH = 2_000
_NUDGE_EXPIRES_S = 60

Letter = Callable[[asyncio.Runner], None]


class Courier:
    """Delivers letters one after the other in its own thread; the oldest is dropped when too many wait."""

    def __init__(self) -> None:
        self._start_anew()
        # Threads do not survive a fork, and a lock held in the parent would stay held in the child.
        os.register_at_fork(after_in_child=self._start_anew)

    def _start_anew(self) -> None:
        self._letters: deque[Letter] = deque(maxlen=QUEUE_LENGTH)
        self._posted = threading.Condition()
        self._thread: threading.Thread | None = None
        self._delivering = False

    def post(self, letter: Letter) -> None:
        """Returns at once, whatever state Redis is in."""
        with self._posted:
            self._letters.append(letter)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._deliver, name="announce", daemon=True)
                self._thread.start()
            self._posted.notify_all()

    def wait_until_idle(self, limit_s: float) -> bool:
        """Whether every letter was delivered or given up within the limit."""
        with self._posted:
            return self._posted.wait_for(
                lambda: not self._letters and not self._delivering, limit_s
            )

    def _deliver(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                with self._posted:
                    self._delivering = False
                    self._posted.notify_all()
                    self._posted.wait_for(lambda: self._letters)
                    letter = self._letters.popleft()
                    self._delivering = True
                try:
                    letter(runner)
                except Exception as error:  # noqa: BLE001 -- the loop's edge: a hint was lost
                    logger.warning("not announced: %s: %s", type(error).__name__, error)


courier = Courier()


def booking_changed(booking: Booking) -> None:
    """Tell, once this is committed, every open calendar; whoever may read the booking hears it whole."""
    masked = visible.calendar_row(booking, viewer=visible.ANYBODY)
    full = visible.calendar_row(booking, viewer=visible.EVERYTHING)
    messages = {"calendar": {"type": "booking.changed", "row": masked}}
    for group in _readers(booking):
        messages[group] = {"type": "booking.changed", "row": full}
    transaction.on_commit(lambda: _to_groups(messages), robust=True)


def notice(person: int, row: dict[str, Any]) -> None:
    """Show a notice, once this is committed, to one person wherever they have a page open."""
    messages = {f"person.{person}": {"type": "notice.new", "row": row}}
    transaction.on_commit(lambda: _to_groups(messages), robust=True)


def nudge(host_names: Iterable[str]) -> None:
    """Tell hosts, once this is committed, that their plan may have changed."""
    names = sorted(set(host_names))

    def send() -> None:
        for name in names:
            courier.post(lambda _, name=name: _nudge(name))  # type: ignore[misc]

    transaction.on_commit(send, robust=True)


def _readers(booking: Booking) -> list[str]:
    """The groups of those who may read the booking whole: owner, people, teammates, operators."""
    people = {booking.owner_id, *(one.pk for one in booking.people.all())}
    if booking.team_id is not None:
        members = Membership.objects.filter(team_id=booking.team_id)
        people.update(members.values_list("user_id", flat=True))
    return [*(f"person.{pk}" for pk in sorted(people)), "operators"]


def _to_groups(messages: Mapping[str, dict[str, Any]]) -> None:
    """One letter for all groups of one change: a run of the loop costs as much as a message."""

    async def send() -> None:
        layer = get_channel_layer()
        if layer is not None:
            for group, message in messages.items():
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


def _nudge(host: str) -> None:
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
