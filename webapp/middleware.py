"""What every answer carries, and in whose zone and language it is written."""

from collections.abc import Callable
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import timezone, translation

GetResponse = Callable[[HttpRequest], HttpResponse]

# No inline script and no inline style: positions are set through the style object, which this allows.
CONTENT_SECURITY_POLICY = "; ".join(
    [
        "default-src 'self'",
        "img-src 'self' data:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)


def content_security_policy(get_response: GetResponse) -> GetResponse:
    """Allow only what this site serves itself. A view that needs more sets its own header."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response

    return answer


def zone_of(request: HttpRequest) -> ZoneInfo:
    """The zone of the person, else the site's. A name that no longer exists counts as none."""
    name = getattr(request.user, "time_zone", "") or settings.SITE_TIME_ZONE
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")


def persons_zone_and_language(get_response: GetResponse) -> GetResponse:
    """Write pages in the zone and the language that the signed-in person chose."""

    def answer(request: HttpRequest) -> HttpResponse:
        language = getattr(request.user, "locale", "")
        with timezone.override(zone_of(request)):
            if not language:
                return get_response(request)
            with translation.override(language):
                return get_response(request)

    return answer
