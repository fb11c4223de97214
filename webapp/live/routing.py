"""Which socket is where, and who may open one: this site's own pages only."""

from channels.auth import AuthMiddlewareStack
from channels.routing import URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.urls import path, re_path

from webapp.live.base import UnknownPath
from webapp.live.calendar import CalendarConsumer
from webapp.live.devices import LiveConsumer

sockets = AllowedHostsOriginValidator(
    AuthMiddlewareStack(
        URLRouter(
            [
                path("ws/calendar/", CalendarConsumer.as_asgi()),
                path("ws/live/", LiveConsumer.as_asgi()),
                re_path(r"^.*$", UnknownPath.as_asgi()),
            ]
        )
    )
)
