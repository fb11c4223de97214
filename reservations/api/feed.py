"""A person's bookings as an iCalendar feed. The address is the secret; whoever has it reads the feed."""

import re
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from icalendar import Calendar, Event
from rest_framework.exceptions import NotFound
from rest_framework.permissions import AllowAny
from rest_framework.request import Request

from reservations import clock
from reservations.api.base import ApiView
from reservations.models import Booking, User
from reservations.selectors import listing
from reservations.selectors.visible import current_allocations
from reservations.services.tokens import digest

_PAST: Final = timedelta(days=90)
# Longer feeds are of no use to a calendar program, and would let one address cost a lot.
_LONGEST: Final = 2_000
# What no line of a feed may contain, however it came into the database.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]+")


class FeedView(ApiView):
    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(exclude=True)
    def get(self, request: Request, secret: str) -> HttpResponse:
        now = clock.now()
        person = User.objects.filter(calendar_digest=digest(secret)).first()
        if person is None or not person.has_access(now):
            raise NotFound
        response = HttpResponse(_feed(person, now=now), content_type="text/calendar; charset=utf-8")
        response["Cache-Control"] = "private, no-cache"
        return response


def _feed(person: User, *, now: datetime) -> bytes:
    calendar = Calendar()
    calendar.add("prodid", "-//Berth//bookings//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add("x-wr-calname", "Berth")
    for booking in listing.of_person(person.pk, since=now - _PAST)[:_LONGEST]:
        calendar.add_component(_event(booking))
    return bytes(calendar.to_ical())


def _event(booking: Booking) -> Event:
    devices = [allocation.device for allocation in current_allocations(booking)]
    hosts = sorted({device.host.name for device in devices})
    event = Event()
    event.add("uid", f"booking-{booking.pk}@{settings.BERTH_URL.partition('://')[2]}")
    event.add("dtstamp", booking.created)
    event.add("sequence", booking.revision)
    event.add("dtstart", booking.start)
    event.add("dtend", booking.end)
    event.add("summary", _line(", ".join(device.name for device in devices)))
    event.add("location", _line(", ".join(hosts)))
    if booking.purpose:
        event.add("description", _line(booking.purpose))
    event.add("status", "TENTATIVE" if booking.state == "pending" else "CONFIRMED")
    event.add("url", f"{settings.BERTH_URL}/bookings/{booking.pk}/")
    return event


def _line(text: str) -> str:
    return _CONTROL.sub(" ", text)
