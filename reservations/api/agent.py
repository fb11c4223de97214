"""What GPU hosts ask and tell. Every host has a token of its own, which opens its own plan and no more.

Plain views instead of REST framework ones: hosts knock every second while somebody watches.
"""

import functools
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import re_path
from django.utils.http import parse_etags
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed

from reservations import clock
from reservations.api.errors import BodyTooLarge, handle
from reservations.core import wire
from reservations.core.errors import Forbidden, Invalid
from reservations.models import Host, Token
from reservations.selectors.visible import instant
from reservations.services import enforcement, hosts, inventory, plans, tokens, usage

MAX_BODY_BYTES: Final = 1_048_576
# JSON's way to write the one character that no database takes, after an even number of backslashes.
_NUL: Final = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")

Shape = TypeVar("Shape", bound=wire.Shape)
View = Callable[[HttpRequest, Host, datetime], HttpResponse]


class _Version(msgspec.Struct):
    wire: int = wire.VERSION


def _for_hosts(method: str) -> Callable[[View], Callable[[HttpRequest], HttpResponseBase]]:
    """A view that a host may call with its token; every refusal becomes a problem answer."""

    def decorate(view: View) -> Callable[[HttpRequest], HttpResponseBase]:
        @csrf_exempt
        @functools.wraps(view)
        def answer(request: HttpRequest) -> HttpResponseBase:
            try:
                return view(request, _host_of(request, method), clock.now())
            except Exception as error:
                if (problem := handle(error, {"request": request})) is None:
                    raise
                return problem

        return answer

    return decorate


def _host_of(request: HttpRequest, method: str) -> Host:
    if request.method != method:
        raise MethodNotAllowed(request.method or "")
    scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
    secret = secret.strip()
    host = hosts.host_of_token(secret) if scheme.lower() == "bearer" else None
    if host is not None:
        return host
    if secret and Token.objects.filter(digest=tokens.digest(secret)).exists():
        raise Forbidden("This is a person's token; hosts have their own.")
    refusal = AuthenticationFailed("Send the host's own token: Authorization: Bearer …")
    refusal.auth_header = 'Bearer realm="berth host"'  # type: ignore[attr-defined]
    raise refusal


def _read(request: HttpRequest, shape: type[Shape]) -> Shape:
    """The body, checked.

    Raises:
        BodyTooLarge: more than a MiB.
        Invalid: no JSON, another shape, or a version that is not spoken here any more.
    """
    # A chunked body has no length to look at beforehand.
    body = request.read(MAX_BODY_BYTES + 1)
    if len(body) > MAX_BODY_BYTES:
        raise BodyTooLarge
    body = _NUL.sub(rb"\1", body)
    try:
        version = msgspec.json.decode(body, type=_Version).wire
        if version not in wire.ACCEPTED_VERSIONS:
            accepted = ", ".join(map(str, sorted(wire.ACCEPTED_VERSIONS)))
            raise Invalid({"wire": [f"version {version} is not spoken here, but {accepted}"]})
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid({"body": [str(error)]}) from error


def _answer(body: msgspec.Struct) -> HttpResponse:
    return HttpResponse(msgspec.json.encode(body), content_type="application/json")


@_for_hosts("PUT")
def put_inventory(request: HttpRequest, host: Host, now: datetime) -> HttpResponse:
    inventory.store_inventory(host, _read(request, wire.Inventory), now=now)
    return HttpResponse(status=204)


@_for_hosts("GET")
def get_plan(request: HttpRequest, host: Host, now: datetime) -> HttpResponse:
    """The plan, or 304 with the instants as of which it is still the one that the host has."""
    plan = plans.plan_for(host, now=now)
    etag = f'"{plan.etag}"'
    known = parse_etags(request.headers.get("If-None-Match", ""))
    answer = HttpResponse(status=304) if etag in known else _answer(plan)
    answer["ETag"] = etag
    answer["Cache-Control"] = "no-store"
    answer["X-Berth-As-Of"] = instant(plan.as_of)
    answer["X-Berth-Server-Time"] = instant(plan.server_time)
    return answer


@_for_hosts("POST")
def post_reports(request: HttpRequest, host: Host, now: datetime) -> HttpResponse:
    batch = _read(request, wire.Reports)
    return _answer(enforcement.record(host, batch.reports, received_at=now))


@_for_hosts("POST")
def post_samples(request: HttpRequest, host: Host, now: datetime) -> HttpResponse:
    return _answer(usage.heartbeat(host, _read(request, wire.Samples), now=now))


urlpatterns = [
    re_path(r"^inventory/?$", put_inventory, name="agent-inventory"),
    re_path(r"^plan/?$", get_plan, name="agent-plan"),
    re_path(r"^reports/?$", post_reports, name="agent-reports"),
    re_path(r"^samples/?$", post_samples, name="agent-samples"),
]
