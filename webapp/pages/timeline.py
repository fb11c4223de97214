"""The timeline: devices by time. Scripts draw it; without them it is a table and a form."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from reservations import clock
from reservations.core.period import Period
from reservations.selectors import day
from reservations.selectors.visible import Viewer
from webapp.pages.page import person_of, show

# Without a chosen day the page begins this long before now, and shows a day's length from there.
BEFORE_NOW = timedelta(hours=3)


@require_safe
@login_required
@ensure_csrf_cookie
def page(request: HttpRequest) -> HttpResponse:
    now = clock.now()
    zone = ZoneInfo(timezone.get_current_timezone_name())
    chosen = _day_of(request.GET.get("day", ""), zone)
    shown = chosen or Period(now - BEFORE_NOW, now - BEFORE_NOW + timedelta(days=1))
    today = (chosen.start if chosen else now).astimezone(zone)
    viewer = Viewer.of(person_of(request))
    return show(
        request,
        "pages/timeline.html",
        section="timeline",
        today=today,
        before=today - timedelta(days=1),
        after=today + timedelta(days=1),
        shown=shown,
        hosts=day.hosts(shown, viewer=viewer),
    )


def _day_of(text: str, zone: ZoneInfo) -> Period | None:
    """The day that was asked for, from midnight to midnight of the zone; None if none was."""
    try:
        date = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone)
        return Period(date, date + timedelta(days=1))
    except (ValueError, OverflowError):
        return None
