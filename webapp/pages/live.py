"""What every device does right now. The page shows who holds what; readings arrive by the socket."""

from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_safe

from reservations import clock
from reservations.selectors import fleet
from reservations.selectors.visible import Viewer
from webapp.pages.page import person_of, show


@require_safe
@login_required
@ensure_csrf_cookie
def page(request: HttpRequest) -> HttpResponse:
    now = clock.now()
    found = list(fleet.devices(now=now))
    viewer = Viewer.of(person_of(request))
    # No readings here: Redis is never waited for while a page is made.
    rows = fleet.device_rows(found, viewer=viewer, now=now, newest={})
    for row in rows:
        current = row["current"]
        row["until"] = datetime.fromisoformat(current["end"]) if current else None
    return show(request, "pages/live.html", section="live", devices=rows)
