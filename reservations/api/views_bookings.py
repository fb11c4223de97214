"""Bookings: each method parses, calls the one service of its verb, and renders once."""

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from reservations import clock
from reservations.api.answers import answer, encode
from reservations.api.base import ApiView, actor_of, body_of, query_of, viewer_of
from reservations.api.errors import objection_row
from reservations.api.idempotency import RenderedOnce, expected_revision, once_of
from reservations.api.pagination import BY_START, page
from reservations.api.schema import (
    BOOKING_ID,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    STALE,
    TAKEN,
    UNKNOWN,
    problems,
)
from reservations.api.serializers import (
    BookBody,
    BookingsQuery,
    CheckBody,
    ExtendBody,
    MoveBody,
    NoBody,
    change_of,
    duration_of,
    wish_of,
)
from reservations.api.shapes import BookingListSerializer, BookingSerializer, CheckSerializer
from reservations.models import Booking
from reservations.selectors import bookings as bookings_read
from reservations.selectors import listing
from reservations.selectors.visible import booking_row
from reservations.services import bookings
from reservations.services.writes import Once

Verb = Callable[[Once | None], Booking]


class BookingsView(ApiView):
    @extend_schema(
        operation_id="list_bookings",
        summary="Bookings in the order of their start",
        parameters=[BookingsQuery],
        responses={200: BookingListSerializer, **problems()},
    )
    def get(self, request: Request) -> HttpResponse:
        query = query_of(request, BookingsQuery)
        viewer, now = viewer_of(request), clock.now()
        chosen = listing.chosen(query, viewer=viewer, now=now)
        found, following = page(chosen, order=BY_START, request=request, query=query)
        rows = [booking_row(one, viewer=viewer, now=now) for one in found]
        return answer({"results": rows, "next": following})

    @extend_schema(
        operation_id="book",
        summary="Book devices",
        parameters=[IDEMPOTENCY_KEY],
        request=BookBody,
        responses={201: BookingSerializer, **problems(TAKEN)},
    )
    def post(self, request: Request) -> HttpResponse:
        wish, now = wish_of(body_of(request, BookBody)), clock.now()
        actor = actor_of(request)
        return _done(
            request, lambda once: bookings.book(wish, actor=actor, now=now, once=once), status=201
        )


class CheckView(ApiView):
    write_scope = "read"

    @extend_schema(
        operation_id="check_booking",
        summary="Would this booking go through? Writes nothing",
        request=CheckBody,
        responses={200: CheckSerializer, **problems(UNKNOWN)},
    )
    def post(self, request: Request) -> HttpResponse:
        data = body_of(request, CheckBody)
        checked = bookings.check(
            wish_of(data), actor=actor_of(request), now=clock.now(), leave_out=data.get("booking")
        )
        return answer(
            {
                "free": checked.free,
                "start": checked.period.start if checked.period else None,
                "end": checked.period.end if checked.period else None,
                "devices": [device.uuid for device in checked.devices or ()],
                "blockers": checked.blockers,
                "objections": [objection_row(one) for one in checked.objections],
                "alternatives": checked.alternatives,
                "quota": checked.quota,
                "warnings": [objection_row(one) for one in checked.warnings],
                "needs_approval": checked.needs_approval,
            }
        )


class BookingView(ApiView):
    @extend_schema(
        operation_id="read_booking",
        summary="One booking",
        parameters=[BOOKING_ID],
        responses={200: BookingSerializer, **problems(UNKNOWN)},
    )
    def get(self, request: Request, booking_id: int) -> HttpResponse:
        booking = bookings_read.one(booking_id)
        row = booking_row(booking, viewer=viewer_of(request), now=clock.now())
        response = answer(row)
        response["ETag"] = f'"{booking.revision}"'
        return response

    @extend_schema(
        operation_id="move_booking",
        summary="Move a booking: another time, other devices, another purpose",
        parameters=[BOOKING_ID, IDEMPOTENCY_KEY, IF_MATCH],
        request=MoveBody,
        responses={200: BookingSerializer, **problems(UNKNOWN, TAKEN, STALE)},
    )
    def patch(self, request: Request, booking_id: int) -> HttpResponse:
        change, now = change_of(body_of(request, MoveBody)), clock.now()
        actor, revision = actor_of(request), expected_revision(request)
        return _done(
            request,
            lambda once: bookings.move(
                booking_id, change, actor=actor, now=now, expected_revision=revision, once=once
            ),
        )

    @extend_schema(
        operation_id="end_booking",
        summary="Cancel a booking that has not begun, release one that runs",
        parameters=[BOOKING_ID, IDEMPOTENCY_KEY, IF_MATCH],
        responses={200: BookingSerializer, **problems(UNKNOWN, TAKEN, STALE)},
    )
    def delete(self, request: Request, booking_id: int) -> HttpResponse:
        body_of(request, NoBody)
        actor, now, revision = actor_of(request), clock.now(), expected_revision(request)
        return _done(
            request,
            lambda once: bookings.release(
                booking_id, actor=actor, now=now, expected_revision=revision, once=once
            ),
        )


class ExtendView(ApiView):
    @extend_schema(
        operation_id="extend_booking",
        summary="Keep the devices longer",
        parameters=[BOOKING_ID, IDEMPOTENCY_KEY],
        request=ExtendBody,
        responses={200: BookingSerializer, **problems(UNKNOWN, TAKEN)},
    )
    def post(self, request: Request, booking_id: int) -> HttpResponse:
        data = body_of(request, ExtendBody)
        actor, now = actor_of(request), clock.now()
        return _done(
            request,
            lambda once: bookings.extend(
                booking_id,
                actor=actor,
                now=now,
                duration=duration_of(data),
                end=data.get("end"),
                once=once,
            ),
        )


class ReleaseView(ApiView):
    @extend_schema(
        operation_id="release_booking",
        summary="Give the devices back now",
        parameters=[BOOKING_ID, IDEMPOTENCY_KEY],
        request=None,
        responses={200: BookingSerializer, **problems(UNKNOWN, TAKEN)},
    )
    def post(self, request: Request, booking_id: int) -> HttpResponse:
        body_of(request, NoBody)
        actor, now = actor_of(request), clock.now()
        return _done(
            request, lambda once: bookings.release(booking_id, actor=actor, now=now, once=once)
        )


def _done(request: Request, verb: Verb, *, status: int = 200) -> HttpResponse:
    """Let the verb happen, once per Idempotency-Key, and answer with the booking it made of it."""

    def render(booking: Booking) -> tuple[int, bytes]:
        row: dict[str, Any] = booking_row(booking, viewer=viewer_of(request), now=clock.now())
        return status, encode(row)

    rendered = RenderedOnce(render)
    booking = verb(once_of(request, rendered))
    code, body = rendered.of(booking)
    return HttpResponse(body, status=code, content_type="application/json")
