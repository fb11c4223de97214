"""What there is to book, and the calendar over it."""

from datetime import datetime
from hashlib import sha256

from django.http import HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from reservations import clock, livestore
from reservations.api.answers import answer
from reservations.api.base import ApiView, query_of, viewer_of
from reservations.api.pagination import BY_NAME, BY_PLACE, PageQuery, page
from reservations.api.schema import problems
from reservations.api.serializers import CalendarQuery, DevicesQuery
from reservations.api.shapes import CalendarSerializer, DeviceListSerializer, HostListSerializer
from reservations.core.errors import Invalid
from reservations.core.period import InvalidPeriod, Period
from reservations.selectors import calendar, fleet, holds


class HostsView(ApiView):
    @extend_schema(
        operation_id="list_hosts",
        summary="Hosts, their mode and when they were last heard of",
        parameters=[PageQuery],
        responses={200: HostListSerializer, **problems()},
    )
    def get(self, request: Request) -> HttpResponse:
        query = query_of(request, PageQuery)
        viewer = viewer_of(request)
        found, following = page(fleet.hosts(), order=BY_NAME, request=request, query=query)
        held = holds.rows(now=clock.now())
        rows = [fleet.host_row(one, viewer=viewer, hold=held.get(one.name)) for one in found]
        return answer({"results": rows, "next": following})


class DevicesView(ApiView):
    @extend_schema(
        operation_id="list_devices",
        summary="Devices with their state, current and next booking, newest reading and verdict",
        parameters=[DevicesQuery],
        responses={200: DeviceListSerializer, **problems()},
    )
    def get(self, request: Request) -> HttpResponse:
        query = query_of(request, DevicesQuery)
        now = clock.now()
        devices = fleet.devices(now=now)
        if "host" in query:
            devices = devices.filter(host__name=query["host"])
        found, following = page(devices, order=BY_PLACE, request=request, query=query)
        newest = livestore.latest([one.uuid for one in found])
        rows = fleet.device_rows(found, viewer=viewer_of(request), now=now, newest=newest)
        return answer({"results": rows, "next": following})


class CalendarView(ApiView):
    @extend_schema(
        operation_id="read_calendar",
        summary="Everything to draw a calendar: devices, and the bookings that touch a period",
        description="Answers with a strong `ETag`; asked with `If-None-Match`, 304 if nothing changed.",
        parameters=[CalendarQuery],
        responses={200: CalendarSerializer, **problems()},
    )
    def get(self, request: Request) -> HttpResponseBase:
        query = query_of(request, CalendarQuery)
        period = _drawn(query["from"], query["to"])
        body = calendar.calendar_json(period, viewer=viewer_of(request), host=query.get("host"))
        response = HttpResponse(body, content_type="application/json")
        etag = f'"{sha256(body).hexdigest()[:32]}"'
        response["ETag"] = etag
        # Whoever asks sees other rows: keep it, but ask again each time.
        response["Cache-Control"] = "private, no-cache"
        return get_conditional_response(request._request, etag=etag, response=response) or response


def _drawn(start: datetime, end: datetime) -> Period:
    """Raises ``Invalid``."""
    try:
        period = Period(start, end)
    except InvalidPeriod as error:
        raise Invalid({"to": [str(error)]}) from None
    if period.duration > calendar.LONGEST:
        raise Invalid({"to": [f"At most {calendar.LONGEST.days} days can be drawn at once."]})
    return period
