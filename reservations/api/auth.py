"""Who asks: a personal token first (so that a wrong one is 401), else the browser's session.

A token lends its scopes and nothing more. ``book`` includes ``read``, ``admin`` includes both; the rights
of an operator travel only with ``admin``.
"""

import contextlib
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import OperationalError
from django.db.models import Q
from rest_framework.authentication import BaseAuthentication
from rest_framework.authentication import SessionAuthentication as DjangoSession
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from reservations import clock
from reservations.models import Token, User
from reservations.services.tokens import SCOPES, digest

_INCLUDED: Final = {
    "read": frozenset({"read"}),
    "book": frozenset({"read", "book"}),
    "admin": frozenset(SCOPES),
}
_NOTE_USE_EVERY = timedelta(minutes=1)


def scopes_of(request: Request) -> frozenset[str]:
    """Everything that this request may do; a session may do all that its person may."""
    if isinstance(request.auth, Token):
        return frozenset().union(*(_INCLUDED.get(scope, ()) for scope in request.auth.scopes))
    return frozenset(SCOPES)


def credential_of(request: Request) -> str:
    """Names whose Idempotency-Keys these are."""
    if isinstance(request.auth, Token):
        return f"token:{request.auth.pk}"
    return f"user:{request.user.pk}"


class BearerAuthentication(BaseAuthentication):
    """``Authorization: Bearer <personal token>``."""

    def authenticate(self, request: Request) -> tuple[User, Token] | None:
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        now = clock.now()
        token = _usable_token(secret.strip(), now=now)
        if token is None:
            raise AuthenticationFailed("This token is unknown, expired or revoked.")
        _note_use(token, now=now)
        user = token.user
        if "admin" not in token.scopes:
            # Only this request's copy: what the token does not lend, its bearer does not have.
            user.is_operator = False
        return user, token

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="berth"'


class SessionAuthentication(DjangoSession):
    """A browser that is signed in; writes need the CSRF token. `webapp.accounts.Backend` knows who may."""


class InScope(BasePermission):
    """Reading needs ``read``; anything else needs what the view names, by default ``book``."""

    message = "This token's scopes do not include that."

    def has_permission(self, request: Request, view: Any) -> bool:
        if not (request.user and request.user.is_authenticated):
            return False
        needed = "read" if request.method in {"GET", "HEAD"} else view.write_scope
        return needed in scopes_of(request)


def _usable_token(secret: str, *, now: datetime) -> Token | None:
    if not secret.isascii():
        return None
    token = Token.objects.select_related("user").filter(digest=digest(secret)).first()
    if token is None or token.revoked_at is not None:
        return None
    if token.expires_at is not None and token.expires_at <= now:
        return None
    return token if token.user.has_access(now) else None


def _note_use(token: Token, *, now: datetime) -> None:
    """At most once a minute. A database that is busy with bookings matters more than this."""
    due = now - _NOTE_USE_EVERY
    if token.last_used_at is None or token.last_used_at <= due:
        with contextlib.suppress(OperationalError):
            Token.objects.filter(
                Q(last_used_at=None) | Q(last_used_at__lte=due), pk=token.pk
            ).update(last_used_at=now)
