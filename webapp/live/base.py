"""What both sockets share: signed-in people only, and a ping that tells a browser it is connected."""

import asyncio
import contextlib
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

    async def connect(self) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        person = self.scope.get("user")
        if not isinstance(person, User):
            # Accepted first: a browser is told no reason of a refused handshake.
            await self.accept()
            await self.close(SIGNED_OUT)
            return
        self.person = person
        await self.accept()
        self.tasks.append(asyncio.create_task(self._ping()))
        await self.joined()

    async def joined(self) -> None:
        """Somebody may listen now."""

    async def left(self) -> None:
        """They are gone."""

    async def disconnect(self, code: int) -> None:
        for task in self.tasks:
            task.cancel()
        if hasattr(self, "person"):
            await self.left()

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
