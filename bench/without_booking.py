"""The web process without the work of a booking: the first booking that there is answers for all.

Everything else is the real request path: connection, middleware, token, throttle, validation, rendering.
"""

from typing import Any

from webapp import asgi

# Loads the apps; what follows needs their models.
application = asgi.application

from reservations.models import Booking  # noqa: E402
from reservations.selectors import bookings as bookings_read  # noqa: E402
from reservations.services import bookings  # noqa: E402

_found: list[Booking] = []


def _book_nothing(*_: Any, **__: Any) -> Booking:
    if not _found:
        _found.append(bookings_read.whole()[0])
    return _found[0]


bookings.book = _book_nothing
