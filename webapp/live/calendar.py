"""Passes every change of a booking on to open calendars: whole to those concerned, masked to all others."""

from typing import Any

import orjson
from channels.db import database_sync_to_async

from reservations import clock
from reservations.announce import CALENDAR
from reservations.selectors import holds, visible
from webapp.live.base import SignedInConsumer


@database_sync_to_async
def _holds() -> dict[str, dict[str, str]]:
    return holds.rows(now=clock.now())


class CalendarConsumer(SignedInConsumer):
    async def joined(self) -> None:
        for group in self._groups():
            await self.channel_layer.group_add(group, self.channel_name)
            self.at_end.push_async_callback(
                self.channel_layer.group_discard, group, self.channel_name
            )
        # Joined first: whoever comes back after a break has missed what was told meanwhile. A browser
        # that has connected takes no host for held until it is told so.
        if held := await _holds():
            await self._tell("hosts", {"holds": held})

    def _groups(self) -> list[str]:
        return [CALENDAR, f"person.{self.person.pk}"]

    async def booking_changed(self, event: dict[str, Any]) -> None:
        whole = self.person.is_operator or self.person.pk in event["readers"]
        await self._tell("booking", event["row"] if whole else visible.masked(event["row"]))

    async def hosts_changed(self, event: dict[str, Any]) -> None:
        await self._tell("hosts", event["row"])

    async def notice_new(self, event: dict[str, Any]) -> None:
        await self._tell("notice", event["row"])

    async def _tell(self, kind: str, row: dict[str, Any]) -> None:
        await self.send(text_data=orjson.dumps({"type": kind, "row": row}).decode())
