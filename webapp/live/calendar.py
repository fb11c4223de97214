"""Passes every change of a booking on to open calendars: masked to all, whole to those concerned."""

from typing import Any

import orjson

from webapp.live.base import SignedInConsumer

EVERYBODY = "calendar"
OPERATORS = "operators"


class CalendarConsumer(SignedInConsumer):
    async def joined(self) -> None:
        for group in self._groups():
            await self.channel_layer.group_add(group, self.channel_name)

    async def left(self) -> None:
        for group in self._groups():
            await self.channel_layer.group_discard(group, self.channel_name)

    def _groups(self) -> list[str]:
        own = f"person.{self.person.pk}"
        return [EVERYBODY, own, *([OPERATORS] if self.person.is_operator else [])]

    async def booking_changed(self, event: dict[str, Any]) -> None:
        await self._tell("booking", event)

    async def notice_new(self, event: dict[str, Any]) -> None:
        await self._tell("notice", event)

    async def _tell(self, kind: str, event: dict[str, Any]) -> None:
        text = orjson.dumps({"type": kind, "row": event["row"]}).decode()
        await self.send(text_data=text)
