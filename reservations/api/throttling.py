"""How often somebody may ask. Counters live in each web process, never in Redis.

A request with a credential counts for its person; any other, also one with a wrong token, for its address.
"""

from django.conf import settings
from django.core.cache import caches
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from reservations import clock

_WINDOW_S = 60


class PerMinute(BaseThrottle):
    """Counts in windows of one minute: one number per asker, whatever the rate."""

    def __init__(self) -> None:
        self._now_s = clock.now().timestamp()

    def allow_request(self, request: Request, view: APIView) -> bool:
        if request.user and request.user.is_authenticated:
            asker, limit = f"user:{request.user.pk}", settings.API_REQUESTS_PER_MINUTE
        else:
            asker = f"address:{request.META.get('REMOTE_ADDR', '')}"
            limit = settings.API_ANONYMOUS_REQUESTS_PER_MINUTE
        key = f"asked:{asker}:{int(self._now_s // _WINDOW_S)}"
        counters = caches["throttle"]
        counters.add(key, 0, timeout=_WINDOW_S)
        try:
            return bool(counters.incr(key) <= limit)
        except ValueError:
            # Culled or expired between the two calls: a new window begins.
            return True

    def wait(self) -> float:
        """Seconds until the next window."""
        return _WINDOW_S - self._now_s % _WINDOW_S
