"""What a web process serves: HTTP by Django, WebSockets by the live consumers."""

import os
import warnings

from channels.routing import ProtocolTypeRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
# WhiteNoise reads files synchronously; they are small and cached by browsers for ever.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous")
# Loads the apps; the consumers below need their models.
pages = get_asgi_application()

from webapp.live.routing import sockets  # noqa: E402

application = ProtocolTypeRouter({"http": pages, "websocket": sockets})
