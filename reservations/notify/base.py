"""What a notice channel is: one file with a class that sends a message to one person."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Protocol


@dataclass(frozen=True, slots=True)
class Message:
    """``text`` is plain: who, what, until when, what to do next."""

    id: int
    person: int
    email: str
    kind: str
    text: str
    booking: int | None
    created: datetime


class Channel(Protocol):
    name: ClassVar[str]

    def send(self, message: Message) -> None:
        """Hands the message over, or raises; then it is tried again later."""
