"""What operators do with a host from a script: hold it while they work on it, and let it act again."""

from datetime import timedelta
from typing import ClassVar, Final

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request

from reservations import clock
from reservations.api.answers import answer
from reservations.api.base import ApiView, actor_of, body_of, viewer_of
from reservations.api.schema import UNKNOWN, problems
from reservations.api.serializers import HoldBody, NoBody
from reservations.api.shapes import HostSerializer
from reservations.selectors import fleet
from reservations.selectors import holds as holds_read
from reservations.services import holds

_NAME: Final = OpenApiParameter("name", OpenApiTypes.STR, OpenApiParameter.PATH)


class HoldView(ApiView):
    write_scope: ClassVar[str] = "admin"

    @extend_schema(
        operation_id="hold_host",
        summary="Have a host open and close nothing and stop nobody for a while",
        description="For operators, with a token of scope `admin`. Repeated, it sets reason and end anew.",
        parameters=[_NAME],
        request=HoldBody,
        responses={200: HostSerializer, **problems(UNKNOWN)},
    )
    def post(self, request: Request, name: str) -> HttpResponse:
        data, now = body_of(request, HoldBody), clock.now()
        until = now + timedelta(seconds=data["duration_s"])
        holds.hold([name], reason=data["reason"], until=until, actor=actor_of(request), now=now)
        return _host(request, name)


class ResumeView(ApiView):
    write_scope: ClassVar[str] = "admin"

    @extend_schema(
        operation_id="resume_host",
        summary="Let a held host act again",
        description="For operators, with a token of scope `admin`. Repeated, it changes nothing.",
        parameters=[_NAME],
        request=None,
        responses={200: HostSerializer, **problems(UNKNOWN)},
    )
    def post(self, request: Request, name: str) -> HttpResponse:
        body_of(request, NoBody)
        holds.resume([name], actor=actor_of(request), now=clock.now())
        return _host(request, name)


def _host(request: Request, name: str) -> HttpResponse:
    host = fleet.hosts().get(name=name)
    hold = holds_read.rows(now=clock.now()).get(name)
    return answer(fleet.host_row(host, viewer=viewer_of(request), hold=hold))
