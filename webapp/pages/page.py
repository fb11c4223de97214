"""What all pages share: the frame, what scripts need to know, and refusals in words."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone, translation

from reservations import clock
from reservations.core import errors
from reservations.models import User
from reservations.selectors import fleet, holds
from reservations.selectors.visible import instant
from reservations.services.actors import Actor
from webapp import walltime
from webapp.pages.strings import strings

# Browsers write dates by these: a language alone would mean its largest country's habits.
_LOCALES = {"en": "en-GB", "zh-hans": "zh-CN"}

_STATUS: dict[type[errors.DomainError], int] = {
    errors.NotFound: 404,
    errors.Forbidden: 403,
    errors.Busy: 503,
}


def person_of(request: HttpRequest) -> User:
    """Who is signed in; pages are only for those who are."""
    if not isinstance(request.user, User):
        raise errors.Forbidden("Sign in first.")
    return request.user


def actor_of(request: HttpRequest) -> Actor:
    address = request.META.get("REMOTE_ADDR") or None
    return Actor.of(person_of(request), source="web", address=address)


def current_zone() -> ZoneInfo:
    """The zone of whoever looks."""
    return ZoneInfo(timezone.get_current_timezone_name())


def show(
    request: HttpRequest, template: str, *, section: str, status: int = 200, **context: Any
) -> HttpResponse:
    """The page, with the navigation's ``section`` marked and the scripts' configuration."""
    now = clock.now()
    frame = {
        "section": section,
        "now": now,
        "zone": walltime.zone_text(now, current_zone()),
        "config": _config(person_of(request), now=now),
    }
    return render(request, template, {**frame, **context}, status=status)


def refusal(request: HttpRequest, error: errors.DomainError) -> HttpResponse:
    """A page that says why not; the sentence comes with the error."""
    status = _STATUS.get(type(error), 409)
    return show(request, "pages/refusal.html", section="", status=status, text=str(error))


def _config(person: User, *, now: datetime) -> dict[str, Any]:
    return {
        "me": {
            "id": person.pk,
            "username": person.username,
            "name": person.name,
            "operator": person.is_operator,
        },
        "zone": timezone.get_current_timezone_name(),
        "locale": _LOCALES.get(translation.get_language() or "en", "en-GB"),
        "grid_s": settings.BOOKING_GRID_MINUTES * 60,
        "now": instant(now),
        "strings": strings(),
        "silent_hosts": {name: instant(since) for name, since in fleet.silent_hosts().items()},
        "holds": holds.rows(now=now),
    }
