"""How every answer leaves: JSON bytes rendered once, and problems as RFC 9457 describes them."""

from typing import Any

import orjson
from django.http import HttpResponse

PROBLEM = "application/problem+json"


def encode(data: Any) -> bytes:
    """Compact JSON; instants as RFC 3339 in UTC with ``Z``."""
    return orjson.dumps(data, option=orjson.OPT_UTC_Z | orjson.OPT_NAIVE_UTC)


def answer(data: Any, *, status: int = 200) -> HttpResponse:
    return HttpResponse(encode(data), status=status, content_type="application/json")


def problem(status: int, code: str, title: str, detail: str, **more: Any) -> HttpResponse:
    body = {
        "type": f"urn:berth:problem:{code}",
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        **more,
    }
    return HttpResponse(encode(body), status=status, content_type=PROBLEM)
