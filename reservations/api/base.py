"""What all REST views share: who asks, how often, what was sent, and under which key."""

from hashlib import sha256
from typing import Any, ClassVar

import orjson
from django.conf import settings
from django.http import HttpResponse
from rest_framework.exceptions import NotAuthenticated, NotFound, ParseError, UnsupportedMediaType
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.views import APIView

from reservations.api.auth import BearerAuthentication, InScope, SessionAuthentication
from reservations.api.errors import BodyTooLarge
from reservations.api.fields import Strict
from reservations.api.throttling import PerMinute
from reservations.models import User
from reservations.selectors.visible import Viewer
from reservations.services.actors import Actor


class ApiView(APIView):
    """Answers JSON whatever a client says it accepts; bodies are JSON objects."""

    authentication_classes = [BearerAuthentication, SessionAuthentication]
    permission_classes = [InScope]
    throttle_classes = [PerMinute]
    http_method_names = ["get", "head", "post", "patch", "put", "delete"]
    write_scope: ClassVar[str] = "book"

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        try:
            self.perform_authentication(request)
        finally:
            # A wrong token counts too, for the address it came from.
            self.check_throttles(request)
        self.check_permissions(request)


class UnknownPath(ApiView):
    """Whatever else is asked for under /api/ gets the same kind of answer."""

    authentication_classes = []
    permission_classes = [AllowAny]

    def _refuse(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponse:
        raise NotFound

    get = post = patch = put = delete = _refuse


def person_of(request: Request) -> User:
    """Who asks; `InScope` lets nobody else through."""
    if not isinstance(request.user, User):
        raise NotAuthenticated
    return request.user


def viewer_of(request: Request) -> Viewer:
    return Viewer.of(person_of(request))


def actor_of(request: Request) -> Actor:
    return Actor.of(
        person_of(request), source="api", address=request.META.get("REMOTE_ADDR") or None
    )


def query_of(request: Request, shape: type[Strict]) -> dict[str, Any]:
    return _validated(shape, request.GET.dict())


def body_of(request: Request, shape: type[Strict]) -> dict[str, Any]:
    """The body, which must be a JSON object; none at all is an empty one.

    DRF's own parsers neither limit the size nor survive deep nesting.
    """
    raw = raw_body(request)
    if not raw:
        return _validated(shape, {})
    content_type = request.META.get("CONTENT_TYPE", "")
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedMediaType(content_type[:100])
    try:
        data = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise ParseError(f"The body is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ParseError("The body must be a JSON object.")
    return _validated(shape, data)


def raw_body(request: Request) -> bytes:
    raw: bytes = request._request.body
    # Django trusts the Content-Length; a chunked body has none.
    if len(raw) > settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
        raise BodyTooLarge
    return raw


def body_hash(request: Request) -> bytes:
    return sha256(raw_body(request)).digest()


def _validated(shape: type[Strict], data: dict[str, Any]) -> dict[str, Any]:
    serializer = shape(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
