"""What both sockets share: signed-in people only, and a ping that tells a browser it is connected."""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer

from reservations.models import User

PING_EVERY_S = 10
PING = '{"type":"ping"}'
# Close codes of our own (4000-4999): the browser knows that coming back is of no use.
SIGNED_OUT = 4401
UNKNOWN_PATH = 4404


class SignedInConsumer(AsyncWebsocketConsumer):
    """Accepts people who are signed in, and tells them regularly that they are connected."""

    person: User
    at_end: contextlib.AsyncExitStack
    """What is undone when they are gone, however that comes about."""

    async def __call__(self, *scope_receive_send: Any) -> None:
        # Not in `disconnect`: a page that is closed while it is being told the first thing ends the
        # consumer by an error, and no `disconnect` follows.
        async with contextlib.AsyncExitStack() as self.at_end:
            await super().__call__(*scope_receive_send)

    async def connect(self) -> None:
        person = self.scope.get("user")
        if not isinstance(person, User):
            # Accepted first: a browser is told no reason of a refused handshake.
            await self.accept()
            await self.close(SIGNED_OUT)
            return
        self.person = person
        await self.accept()
        self.keep_doing(self._ping())
        await self.joined()

    async def joined(self) -> None:
        """Somebody may listen now."""

    def keep_doing(self, work: Coroutine[Any, Any, None]) -> None:
        """Goes on beside this connection, as long as it lasts."""
        self.at_end.callback(asyncio.create_task(work).cancel)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Browsers only listen here; what they say is not for this door."""

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(PING_EVERY_S)
            await self.send(text_data=PING)


class UnknownPath(AsyncWebsocketConsumer):
    """Whatever else is asked for is closed, instead of an error in the log for each try."""

    async def connect(self) -> None:
        await self.accept()
        await self.close(UNKNOWN_PATH)


async def cancelled(task: "asyncio.Task[Any]") -> None:
    """Ends a task and waits until it has ended."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
