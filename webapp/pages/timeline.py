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


@require_safe
@login_required
@ensure_csrf_cookie
def page(request: HttpRequest) -> HttpResponse:
    now = clock.now()
    zone = ZoneInfo(timezone.get_current_timezone_name())
    shown = _day_of(request.GET.get("day", ""), zone, now=now)
    viewer = Viewer.of(person_of(request))
    return show(
        request,
        "pages/timeline.html",
        section="timeline",
        day=shown.start,
        hosts=day.hosts(shown, viewer=viewer),
    )


def _day_of(text: str, zone: ZoneInfo, *, now: datetime) -> Period:
    """The day that was asked for, from midnight to midnight of the zone; else today."""
    try:
        date = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone)
        return Period(date, date + timedelta(days=1))
    except (ValueError, OverflowError):
        today = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return Period(today, today + timedelta(days=1))
