"""Idempotency-Key and If-Match: what a client may say so that a repeat or a race does no harm."""

import re
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from rest_framework.request import Request

from reservations.api.auth import credential_of
from reservations.api.base import body_hash
from reservations.core.errors import Invalid
from reservations.services.writes import Once

T = TypeVar("T")
_KEY: Final = re.compile(r"[\x21-\x7e]{1,200}")
_REVISION: Final = re.compile(r'(?:W/)?"?([0-9]{1,9})"?')


class RenderedOnce(Generic[T]):
    """Renders the answer inside the transaction where it is stored, and keeps it for the view."""

    def __init__(self, render: Callable[[T], tuple[int, bytes]]) -> None:
        self._render = render
        self.rendered: tuple[int, bytes] | None = None

    def __call__(self, result: T) -> tuple[int, bytes]:
        self.rendered = self._render(result)
        return self.rendered

    def of(self, result: T) -> tuple[int, bytes]:
        """What was rendered already, or, for a request without a key, rendered now."""
        return self.rendered or self(result)


def once_of(request: Request, render: Callable[[Any], tuple[int, bytes]]) -> Once | None:
    """The request's key with all that must be the same when it comes again; None without a key.

    Raises:
        Invalid: the header is not 1 to 200 visible ASCII characters.
    """
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise Invalid({"Idempotency-Key": ["must be 1 to 200 visible ASCII characters"]})
    return Once(
        credential=credential_of(request),
        key=key,
        method=str(request.method),
        path=request.path.rstrip("/"),
        body_hash=body_hash(request),
        render=render,
    )


def expected_revision(request: Request) -> int | None:
    """The revision in ``If-Match``; None if there is none or any will do (``*``).

    Raises:
        Invalid: the header names no revision.
    """
    header = request.headers.get("If-Match")
    if header is None or header.strip() == "*":
        return None
    match = _REVISION.fullmatch(header.strip())
    if match is None:
        raise Invalid({"If-Match": ['must be a revision in quotes, such as "3"']})
    return int(match[1])
