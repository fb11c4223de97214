"""One Redis subscription per web process, whatever the number of open pages.

Each host's tick arrives as the text that browsers get and is handed on unchanged. Of every host only the
newest text waits for a listener: a slow browser skips ticks instead of falling behind.
"""

import asyncio
import contextlib
import logging
from weakref import WeakKeyDictionary

import msgspec
import redis.asyncio
from asgiref.sync import sync_to_async
from django.conf import settings

from reservations import livestore
from webapp.live.base import cancelled

logger = logging.getLogger(__name__)

RETRY_S = 2.0


class _Device(msgspec.Struct):
    host: str


class _Tick(msgspec.Struct):
    devices: list[_Device]


class Listener:
    """What one browser has not been told yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, str] = {}
        self._news = asyncio.Event()

    def put(self, host: str, text: str) -> None:
        self._waiting[host] = text
        self._news.set()

    async def texts(self) -> list[str]:
        """The newest text of each host that had news since the last call; waits for some."""
        await self._news.wait()
        self._news.clear()
        found = list(self._waiting.values())
        self._waiting.clear()
        return found


class Hub:
    """Listens while somebody looks, and lets the hosts know that somebody does."""

    def __init__(self) -> None:
        self.listeners: set[Listener] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def join(self) -> Listener:
        listener = Listener()
        self.listeners.add(listener)
        if not self._tasks:
            work = (self._subscribe(), self._keep_watched())
            self._tasks = [asyncio.create_task(one) for one in work]
        return listener

    async def leave(self, listener: Listener) -> None:
        self.listeners.discard(listener)
        if self.listeners:
            return
        ended, self._tasks = self._tasks, []
        for task in ended:
            await cancelled(task)

    async def _keep_watched(self) -> None:
        mark = sync_to_async(livestore.mark_watched, thread_sensitive=False)
        while True:
            await mark()
            await asyncio.sleep(livestore.WATCHED_S / 3)

    async def _subscribe(self) -> None:
        while True:
            try:
                await self._hand_on()
            except (redis.RedisError, OSError) as error:
                logger.warning("live values: %s; trying again", type(error).__name__)
            await asyncio.sleep(RETRY_S)

    async def _hand_on(self) -> None:
        # health_check_interval notices a Redis that is gone without a word.
        client = redis.asyncio.from_url(settings.REDIS_URL, health_check_interval=10)
        async with contextlib.aclosing(client), client.pubsub() as subscription:
            await subscription.subscribe(livestore.CHANNEL)
            async for message in subscription.listen():
                if message["type"] == "message":
                    self._tell(message["data"])

    def _tell(self, data: bytes) -> None:
        try:
            tick = msgspec.json.decode(data, type=_Tick)
        except msgspec.MsgspecError:
            logger.warning("live values: a message that is none")
            return
        if not tick.devices:
            return
        text = data.decode()
        for listener in self.listeners:
            listener.put(tick.devices[0].host, text)


_hubs: "WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = WeakKeyDictionary()


def hub() -> Hub:
    """The hub of this process: a web process has one event loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
