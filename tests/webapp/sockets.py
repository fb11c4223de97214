"""A browser's end of a WebSocket, without a network: what goes in, what comes out."""

import json
from typing import Any

from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.test import Client

ORIGIN = "http://localhost"


class Socket(ApplicationCommunicator):
    """Opened with the session of a client, from a page of ``origin`` (None: no such header)."""

    def __init__(
        self, path: str, *, client: Client | None = None, origin: str | None = ORIGIN
    ) -> None:
        from webapp.asgi import application

        headers = {"host": "localhost"}
        if origin:
            headers["origin"] = origin
        if client:
            session = client.cookies[settings.SESSION_COOKIE_NAME].value
            headers["cookie"] = f"{settings.SESSION_COOKIE_NAME}={session}"
        scope = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "subprotocols": [],
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        super().__init__(application, scope)

    async def connect(self) -> bool:
        """Whether the server accepted."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(5)
        return bool(answer["type"] == "websocket.accept")

    async def say(self, **content: Any) -> None:
        await self.send_input({"type": "websocket.receive", **content})

    async def hear(self) -> Any:
        """The next message."""
        answer = await self.receive_output(5)
        assert answer["type"] == "websocket.send", answer
        return json.loads(answer["text"])

    async def close_code(self) -> int:
        answer = await self.receive_output(5)
        assert answer["type"] == "websocket.close", answer
        return int(answer["code"])

    async def leave(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(5)
