"""Shows what devices do right now: everything at once on connecting, then what changes."""

import msgspec
from asgiref.sync import sync_to_async

from reservations import clock, livestore
from webapp.live.base import SignedInConsumer
from webapp.live.hub import Listener, hub


class LiveConsumer(SignedInConsumer):
    async def joined(self) -> None:
        # Joined first: what happens while the snapshot is read is told after it.
        listener = hub().join()
        self.at_end.push_async_callback(hub().leave, listener)
        read = sync_to_async(livestore.snapshot, thread_sensitive=False)
        devices = await read(now=clock.now())
        text = msgspec.json.encode({"type": "snapshot", "devices": devices})
        await self.send(text_data=text.decode())
        self.keep_doing(self._pass_on(listener))

    async def _pass_on(self, listener: Listener) -> None:
        while True:
            for text in await listener.texts():
                await self.send(text_data=text)
