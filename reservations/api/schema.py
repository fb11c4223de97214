"""OpenAPI: what every operation has in common, said once."""

from typing import Any, Final

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.permissions import AllowAny

from reservations.api.shapes import ProblemSerializer

_PROBLEM_TYPE: Final = "application/problem+json"
_ALWAYS: Final = {
    400: "`invalid`",
    401: "`not_authenticated`",
    403: "`forbidden`",
    429: "`throttled`, with `Retry-After`",
    503: "`busy`, with `Retry-After`",
}

IDEMPOTENCY_KEY: Final = OpenApiParameter(
    "Idempotency-Key",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="At most 200 visible characters of your own choice. The same request under the same key "
    "takes effect once within 24 hours and gets the same answer again.",
)
IF_MATCH: Final = OpenApiParameter(
    "If-Match",
    OpenApiTypes.STR,
    OpenApiParameter.HEADER,
    description="The revision you know, in quotes. If it is no longer that one: 412 `stale`.",
)
BOOKING_ID: Final = OpenApiParameter("booking_id", OpenApiTypes.INT64, OpenApiParameter.PATH)

TAKEN: Final = {
    409: "`slot_taken` or `not_possible_now`",
    422: "`refused` or `idempotency_mismatch`",
}
UNKNOWN: Final = {404: "`not_found`"}
STALE: Final = {412: "`stale`"}


def problems(*groups: dict[int, str]) -> dict[Any, Any]:
    """Responses for `extend_schema`: those that every operation can give, and these."""
    texts = dict(_ALWAYS)
    for group in groups:
        texts.update(group)
    return {
        (status, _PROBLEM_TYPE): OpenApiResponse(ProblemSerializer, description=text)
        for status, text in texts.items()
    }


class Described(AutoSchema):
    """Groups operations by what they are about. Only `extend_schema` describes them."""

    def get_description(self) -> str:  # type: ignore[override]
        return ""

    def get_tags(self) -> list[str]:
        words = [word for word in self.path.split("/") if word and not word.startswith("{")]
        return [words[2] if len(words) > 2 else words[-1]]

    def get_auth(self) -> list[Any]:
        if self.view.permission_classes == [AllowAny]:
            return []
        return list(super().get_auth())


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "reservations.api.auth.BearerAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A personal token, made in the settings or with `manage.py token`.",
        }


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "reservations.api.auth.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "A browser that is signed in. Writes also need the header X-CSRFToken.",
        }
