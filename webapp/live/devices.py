"""Shows what devices do right now: everything at once on connecting, then what changes."""

import asyncio

import msgspec
from asgiref.sync import sync_to_async

from reservations import clock, livestore
from webapp.live.base import SignedInConsumer
from webapp.live.hub import Listener, hub


class LiveConsumer(SignedInConsumer):
    listener: Listener

    async def joined(self) -> None:
        # Joined first: what happens while the snapshot is read is told after it.
        self.listener = hub().join()
        read = sync_to_async(livestore.snapshot, thread_sensitive=False)
        devices = await read(now=clock.now())
        text = msgspec.json.encode({"type": "snapshot", "devices": devices})
        await self.send(text_data=text.decode())
        self.tasks.append(asyncio.create_task(self._pass_on()))

    async def left(self) -> None:
        await hub().leave(self.listener)

    async def _pass_on(self) -> None:
        while True:
            for text in await self.listener.texts():
                await self.send(text_data=text)
