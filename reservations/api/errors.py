"""Every refusal becomes application/problem+json here and nowhere else. The table is in docs/api.md."""

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpResponse
from django.http.request import UnreadablePostError
from rest_framework import exceptions

from reservations import clock
from reservations.api.answers import problem
from reservations.core import errors
from reservations.selectors import bookings as bookings_read
from reservations.selectors import visible
from reservations.services.writes import Replayed

logger = logging.getLogger(__name__)

# Status and title; the error itself brings its code and its sentence.
_DOMAIN: Final[Mapping[type[errors.DomainError], tuple[int, str]]] = {
    errors.Invalid: (400, "The request does not make sense"),
    errors.Forbidden: (403, "Not allowed"),
    errors.NotFound: (404, "Not found"),
    errors.SlotTaken: (409, "The slot is taken"),
    errors.NotPossibleNow: (409, "Not possible now"),
    errors.DeviceElsewhere: (409, "The device belongs to another host"),
    errors.Stale: (412, "Changed in the meantime"),
    errors.Refused: (422, "Rules refuse this booking"),
    errors.IdempotencyMismatch: (422, "The key was used for another request"),
    errors.Busy: (503, "Busy, try again"),
}


class BodyTooLarge(exceptions.APIException):
    status_code = 413
    default_detail = "The body is larger than this server takes."


class Unreachable(exceptions.APIException):
    status_code = 503
    default_detail = (
        "The database does not answer. Try again; with an Idempotency-Key a repeat does no harm."
    )


_FRAMEWORK: Final[Mapping[type[exceptions.APIException], tuple[str, str]]] = {
    exceptions.NotAuthenticated: ("not_authenticated", "Sign in first"),
    exceptions.AuthenticationFailed: ("not_authenticated", "Sign in first"),
    exceptions.PermissionDenied: ("forbidden", "Not allowed"),
    exceptions.NotFound: ("not_found", "Not found"),
    exceptions.MethodNotAllowed: ("method_not_allowed", "Not with this method"),
    exceptions.NotAcceptable: ("not_acceptable", "No such format"),
    exceptions.UnsupportedMediaType: ("unsupported_media_type", "Send JSON"),
    exceptions.ParseError: ("invalid", "The request does not make sense"),
    exceptions.ValidationError: ("invalid", "The request does not make sense"),
    exceptions.Throttled: ("throttled", "Too many requests"),
    BodyTooLarge: ("too_large", "Too large"),
    Unreachable: ("busy", "Busy, try again"),
}


def handle(error: Exception, context: Mapping[str, Any]) -> HttpResponse | None:
    """The answer to an exception of a view; None lets an unforeseen one reach the log as it is."""
    if isinstance(error, Replayed):
        answer = HttpResponse(error.body, status=error.status, content_type="application/json")
        answer["Idempotency-Replayed"] = "true"
        return answer
    if isinstance(error, errors.DomainError):
        return _domain_problem(error, context)
    error = _as_framework_error(error)
    if isinstance(error, exceptions.APIException):
        return _framework_problem(error)
    return None


def _domain_problem(error: errors.DomainError, context: Mapping[str, Any]) -> HttpResponse:
    status, title = _DOMAIN[type(error)]
    answer = problem(status, error.code, title, str(error), **_details(error, context))
    if isinstance(error, errors.Busy):
        answer["Retry-After"] = str(error.retry_after_s)
    return answer


def _details(error: errors.DomainError, context: Mapping[str, Any]) -> dict[str, Any]:
    match error:
        case errors.Invalid():
            return {"errors": error.errors}
        case errors.SlotTaken():
            return {"blockers": error.blockers, "alternatives": error.alternatives}
        case errors.Refused():
            return {
                "objections": [objection_row(one) for one in error.objections],
                "alternatives": error.alternatives,
            }
        case errors.Stale():
            return {"booking": _current(error.booking, context)}
        case _:
            return {}


def objection_row(objection: errors.Objection) -> dict[str, Any]:
    return {**objection.facts, "rule": objection.rule, "text": objection.text}


def _current(booking_id: int, context: Mapping[str, Any]) -> dict[str, Any]:
    viewer = visible.Viewer.of(context["request"].user)
    booking = bookings_read.one(booking_id)
    return visible.booking_row(booking, viewer=viewer, now=clock.now())


def _as_framework_error(error: Exception) -> Exception:
    match error:
        case Http404():
            return exceptions.NotFound()
        case PermissionDenied():
            return exceptions.PermissionDenied()
        case RequestDataTooBig():
            return BodyTooLarge()
        case SuspiciousOperation() | UnreadablePostError():
            return exceptions.ParseError()
        case OperationalError():
            # No connection to be had, a server that restarts: true for everyone, and it passes.
            logger.error("database out of reach: %s", error)
            return Unreachable()
        case _:
            return error


def _framework_problem(error: exceptions.APIException) -> HttpResponse:
    code, title = _FRAMEWORK.get(type(error), ("invalid", "Refused"))
    if isinstance(error, exceptions.ValidationError):
        fields = dict(_by_field("", error.detail))
        detail = "; ".join(f"{name}: {' '.join(texts)}" for name, texts in fields.items())
        return problem(400, code, title, detail, errors=fields)
    more: dict[str, Any] = {"errors": {}} if code == "invalid" else {}
    answer = problem(error.status_code, code, title, str(error.detail), **more)
    if challenge := getattr(error, "auth_header", None):
        answer["WWW-Authenticate"] = challenge
    if isinstance(error, Unreachable):
        answer["Retry-After"] = str(errors.Busy.retry_after_s)
    elif isinstance(error, exceptions.Throttled):
        answer["Retry-After"] = str(int(getattr(error, "wait", None) or 0) + 1)
    return answer


def _by_field(path: str, detail: Any) -> Iterator[tuple[str, list[str]]]:
    """``{"devices": {0: ["…"]}}`` becomes ``("devices.0", ["…"])``."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _by_field(f"{path}.{name}".lstrip("."), inner)
    elif isinstance(detail, list) and any(isinstance(one, Mapping) for one in detail):
        for number, inner in enumerate(detail):
            yield from _by_field(f"{path}.{number}".lstrip("."), inner)
    elif detail:
        yield path or "body", [str(text) for text in detail]
