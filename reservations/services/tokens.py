"""Secrets that open doors for scripts and calendars. Only their SHA-256 is kept; each is shown once."""

import secrets
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Final

from django.db import transaction

from reservations.core.errors import Invalid
from reservations.models import Token, User
from reservations.selectors.visible import instant
from reservations.services import audit
from reservations.services.actors import Actor

PREFIX: Final = "berth_"
SCOPES: Final = ("read", "book", "admin")
_RANDOM_BYTES = 32


def digest(secret: str) -> bytes:
    return sha256(secret.encode()).digest()


def issue_token(
    user: User,
    *,
    name: str,
    scopes: Iterable[str],
    actor: Actor,
    now: datetime,
    expires_at: datetime | None = None,
) -> tuple[Token, str]:
    """The row and the secret, which nobody can read again.

    Raises:
        Invalid: a scope that does not exist, none at all, or an end in the past.
    """
    wanted = set(scopes)
    if not wanted or not wanted <= set(SCOPES):
        raise Invalid({"scopes": [f"Choose from {', '.join(SCOPES)}."]})
    if expires_at is not None and expires_at <= now:
        raise Invalid({"expires_at": ["The end must lie in the future."]})
    secret = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    with transaction.atomic():
        token = Token.objects.create(
            user=user,
            name=name,
            digest=digest(secret),
            scopes=[scope for scope in SCOPES if scope in wanted],
            created=now,
            expires_at=expires_at,
        )
        _record("token_made", token, actor=actor, now=now)
    return token, secret


def revoke_token(token: Token, *, actor: Actor, now: datetime) -> None:
    """From now on the token opens nothing. Repeating it changes nothing."""
    with transaction.atomic():
        if Token.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
            _record("token_revoked", token, actor=actor, now=now)


def _record(verb: str, token: Token, *, actor: Actor, now: datetime) -> None:
    after = {
        "user": token.user.username,
        "name": token.name,
        "scopes": token.scopes,
        "expires_at": instant(token.expires_at) if token.expires_at else None,
    }
    audit.record(verb, actor=actor, now=now, after=after)


def rotate_calendar_secret(user: User) -> str:
    """A new secret for the person's iCal address; the old address is dead at once."""
    secret = secrets.token_urlsafe(_RANDOM_BYTES)
    User.objects.filter(pk=user.pk).update(calendar_digest=digest(secret))
    return secret
