"""What a web process serves: HTTP by Django, WebSockets by the live consumers."""

import os

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# Loads the apps; the consumers below need their models.
pages = get_asgi_application()

from webapp.live.routing import sockets  # noqa: E402

application = ProtocolTypeRouter({"http": pages, "websocket": sockets})
