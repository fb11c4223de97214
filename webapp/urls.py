"""Addresses: pages here, sign-in by allauth, everything for machines in reservations/api."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

# Also registers the converter "key".
from reservations.api import urls as api
from webapp import health
from webapp.pages import bookings, calendar_address, live, manage, timeline

urlpatterns: list[URLPattern | URLResolver] = [
    path("", timeline.page, name="timeline"),
    path("live/", live.page, name="live"),
    path("bookings/", bookings.mine, name="bookings"),
    path("bookings/new/", bookings.new, name="book"),
    path("bookings/calendar/", calendar_address.renew, name="calendar-address"),
    path("bookings/<key:booking_id>/", bookings.detail, name="booking"),
    path("bookings/<key:booking_id>/extend/", bookings.extend, name="booking-extend"),
    path("bookings/<key:booking_id>/release/", bookings.release, name="booking-release"),
    path("bookings/<key:booking_id>/cancel/", bookings.cancel, name="booking-cancel"),
    path("manage/", manage.overview, name="manage"),
    path("manage/hold/", manage.hold_all, name="manage-hold-all"),
    path("manage/resume/", manage.resume_all, name="manage-resume-all"),
    path("manage/hosts/<slug:name>/", manage.host, name="manage-host"),
    path("manage/hosts/<slug:name>/mode/", manage.mode, name="manage-mode"),
    path("manage/hosts/<slug:name>/enforce/", manage.enforce, name="manage-enforce"),
    path("manage/hosts/<slug:name>/settings/", manage.settings, name="manage-settings"),
    path("manage/hosts/<slug:name>/hold/", manage.hold, name="manage-hold"),
    path("manage/hosts/<slug:name>/resume/", manage.resume, name="manage-resume"),
    path("manage/hosts/<slug:name>/fine/", manage.device_fine, name="manage-fine"),
    path("accounts/", include("allauth.account.urls")),
    path("admin/", admin.site.urls),
    path("livez", health.livez, name="livez"),
    path("healthz", health.healthz, name="healthz"),
    path("api/v1/agent/", include("reservations.api.agent")),
    path("", include(api)),
]
