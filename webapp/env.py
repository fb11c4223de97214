"""Typed reading of the environment. A wrong value stops the start with one sentence."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.core.exceptions import ImproperlyConfigured

_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off", ""}


def load_defaults(path: Path) -> None:
    """Take ``NAME=value`` lines of a file for variables that the environment does not set.

    `make up` writes such a file, so that `manage.py` in another shell means the same site.
    """
    if not path.exists():
        return
    for line in path.read_text().splitlines():
        name, separator, value = line.partition("=")
        if separator and not name.startswith("#"):
            os.environ.setdefault(name.strip(), value.strip())


def text(name: str, default: str, environ: Mapping[str, str] = os.environ) -> str:
    return environ.get(name, default)


def secret(name: str, default: str = "", environ: Mapping[str, str] = os.environ) -> str:
    """The variable itself, or the content of the file that ``<name>_FILE`` names."""
    if path := environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE={path}: {error.strerror}") from error
    return environ.get(name, default)


def flag(name: str, *, default: bool, environ: Mapping[str, str] = os.environ) -> bool:
    value = environ.get(name)
    if value is None:
        return default
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise ImproperlyConfigured(f"{name}={value!r}: expected yes or no")


def integer(
    name: str, default: int, *, minimum: int = 0, environ: Mapping[str, str] = os.environ
) -> int:
    value = environ.get(name)
    if value is None:
        return default
    try:
        number = int(value)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r}: expected a whole number") from None
    if number < minimum:
        raise ImproperlyConfigured(f"{name}={value!r}: must be at least {minimum}")
    return number


def choice(
    name: str, default: str, *, among: tuple[str, ...], environ: Mapping[str, str] = os.environ
) -> str:
    value = environ.get(name, default)
    if value not in among:
        raise ImproperlyConfigured(f"{name}={value!r}: expected {' or '.join(among)}")
    return value


def zone(name: str, default: str, environ: Mapping[str, str] = os.environ) -> str:
    """The IANA name of a time zone."""
    value = environ.get(name, default)
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError):
        raise ImproperlyConfigured(
            f"{name}={value!r}: expected a zone, such as Europe/Berlin"
        ) from None
    return value


def words(name: str, default: str = "", environ: Mapping[str, str] = os.environ) -> list[str]:
    """A comma-separated list, blanks removed."""
    return [word.strip() for word in environ.get(name, default).split(",") if word.strip()]


def database(url: str) -> dict[str, Any]:
    """Django's settings for ``sqlite:///path`` or ``postgres://user:password@host:port/name``."""
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            # sqlite:///relative/path and sqlite:////absolute/path
            "NAME": parts.path.removeprefix("/"),
            # IMMEDIATE: a transaction that will write says so at once, instead of failing later.
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "timeout": 10,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    if parts.scheme in {"postgres", "postgresql"}:
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": unquote(parts.path.removeprefix("/")),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": parts.hostname or "",
            "PORT": str(parts.port or ""),
            # A request that waits this long for a lock answers "busy" (503) instead of hanging.
            "OPTIONS": {
                "pool": {"min_size": 1, "max_size": 8, "timeout": 10},
                "options": "-c lock_timeout=10000",
                # For `reservations.prepared` alone: the ORM's own cursors never prepare.
                "prepare_threshold": 2,
                **dict(parse_qsl(parts.query)),
            },
        }
    raise ImproperlyConfigured(f"DATABASE_URL={url!r}: expected sqlite:///… or postgres://…")
