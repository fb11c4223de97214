"""The address under which a person's calendar program reads their bookings. Shown once, replaced at will."""

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from reservations.services.tokens import rotate_calendar_secret
from webapp.pages.page import person_of, show


@require_POST
@login_required
@never_cache
def renew(request: HttpRequest) -> HttpResponse:
    """A new address; the old one, if there was one, is dead at once."""
    secret = rotate_calendar_secret(person_of(request))
    address = settings.BERTH_URL + reverse("calendar-feed", args=[secret])
    return show(request, "pages/calendar_address.html", section="bookings", address=address)
