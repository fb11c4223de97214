"""Addresses of REST v1. Each answers with and without a trailing slash; one spelling is documented."""

from typing import Any

from django.urls import URLPattern, URLResolver, path, re_path, register_converter

from reservations.api.base import ApiView, UnknownPath
from reservations.api.docs import DocsView, SchemaView
from reservations.api.feed import FeedView
from reservations.api.views_bookings import (
    BookingsView,
    BookingView,
    CheckView,
    ExtendView,
    ReleaseView,
)
from reservations.api.views_fleet import CalendarView, DevicesView, HostsView
from reservations.api.views_hosts import HoldView, ResumeView
from reservations.api.views_me import MeView
from reservations.api.views_slots import SlotsView


class Key:
    """A positive integer that every database can hold."""

    regex = "[0-9]{1,18}"

    def to_python(self, text: str) -> int:
        return int(text)

    def to_url(self, value: Any) -> str:
        return str(value)


register_converter(Key, "key")


def both(spelled: str, view: type[ApiView], name: str) -> list[URLPattern]:
    """The address as documented, and with the trailing slash added or left out."""
    other = spelled.removesuffix("/") if spelled.endswith("/") else f"{spelled}/"
    return [
        path(f"api/v1/{spelled}", view.as_view(), name=name),
        path(f"api/v1/{other}", view.as_view(schema=None)),
    ]


urlpatterns: list[URLPattern | URLResolver] = [
    *both("me", MeView, "api-me"),
    *both("hosts/", HostsView, "api-hosts"),
    *both("hosts/<slug:name>/hold", HoldView, "api-hold"),
    *both("hosts/<slug:name>/resume", ResumeView, "api-resume"),
    *both("devices/", DevicesView, "api-devices"),
    *both("calendar", CalendarView, "api-calendar"),
    *both("slots", SlotsView, "api-slots"),
    *both("bookings/", BookingsView, "api-bookings"),
    *both("bookings/check", CheckView, "api-check"),
    *both("bookings/<key:booking_id>/", BookingView, "api-booking"),
    *both("bookings/<key:booking_id>/extend", ExtendView, "api-extend"),
    *both("bookings/<key:booking_id>/release", ReleaseView, "api-release"),
    path("calendar/<str:secret>.ics", FeedView.as_view(), name="calendar-feed"),
    path("api/schema/", SchemaView.as_view(), name="api-schema"),
    path("api/docs/", DocsView.as_view(), name="api-docs"),
    re_path(r"^api/", UnknownPath.as_view(schema=None)),
]
