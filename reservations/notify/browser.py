"""Notices in the browser: they appear at once where a page is open, and wait in the list otherwise."""

from typing import ClassVar

from reservations import announce
from reservations.notify.base import Message


class BrowserChannel:
    name: ClassVar[str] = "browser"

    def send(self, message: Message) -> None:
        announce.notice(
            message.person,
            {
                "id": message.id,
                "kind": message.kind,
                "text": message.text,
                "booking": message.booking,
                "created": message.created.isoformat(),
            },
        )
