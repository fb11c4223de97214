"""Which socket is where, and who may open one: this site's own pages only."""

from collections.abc import Callable
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import path, re_path

from webapp.live.base import UnknownPath
from webapp.live.calendar import CalendarConsumer
from webapp.live.devices import LiveConsumer


def _socket(
    pattern: Callable[..., Any], address: str, consumer: type[AsyncWebsocketConsumer]
) -> Any:
    """A route as Channels wants it; the types of Django's own routes only know views."""
    return pattern(address, consumer.as_asgi())


sockets = AllowedHostsOriginValidator(
    AuthMiddlewareStack(
        URLRouter(
            [
                _socket(path, "ws/calendar/", CalendarConsumer),
                _socket(path, "ws/live/", LiveConsumer),
                _socket(re_path, r"^.*$", UnknownPath),
            ]
        )
    )
)
