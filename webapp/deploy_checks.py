"""What `manage.py check --deploy` asks of a real site: each fault in a sentence, with what to write or run.

Errors make the command fail. Nothing here runs when the web process starts: it has to serve what it can
also while Redis is down or the clock is off, and `/healthz` says what is not well then.
"""

import stat
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import available_timezones

import redis
from django.conf import settings
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import checks
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from redis.backoff import NoBackoff
from redis.retry import Retry

from reservations import clock
from reservations.core.wire import MAX_SKEW_S
from reservations.models import Host
from reservations.selectors import machines
from reservations.services import pulses

_LIMIT_S = 2.0
_REDIS_AT_LEAST = (6, 2)
_KEY_AT_LEAST = 50
_UNITS = {pulses.CONTROL: "control worker", pulses.BEAT: "beat"}
Found = Iterator[checks.CheckMessage]


def _asks(number: int) -> Callable[[Callable[[], Found]], Callable[..., list[checks.CheckMessage]]]:
    """Register a check of the deployment; all that it finds has one id."""

    def register(ask: Callable[[], Found]) -> Callable[..., list[checks.CheckMessage]]:
        def check(**_: object) -> list[checks.CheckMessage]:
            found = list(ask())
            for fault in found:
                fault.id = f"webapp.D{number:03d}"
            return found

        checks.register(check, deploy=True)
        return check

    return register


@_asks(1)
def ask_secret_key() -> Found:
    key = settings.SECRET_KEY
    if len(key) < _KEY_AT_LEAST or len(set(key)) < 5:
        yield checks.Error(
            f"SECRET_KEY is shorter than {_KEY_AT_LEAST} characters or easily guessed: sessions could be forged.",
            hint="Write SECRET_KEY= and what this prints: python3 -c 'import secrets; print(secrets.token_urlsafe(50))'",
        )


@_asks(2)
def ask_debug() -> Found:
    if settings.DEBUG:
        yield checks.Error(
            "DEBUG is on: pages would show the site's secrets.", hint="Write DEBUG = False."
        )


@_asks(3)
def ask_https() -> Found:
    host = urlsplit(settings.BERTH_URL).hostname or ""
    hint = "End TLS in a proxy (deploy/nginx/berth.conf) and write BERTH_URL=https://NAME."
    if not settings.HTTPS and not _is_loopback(host):
        text = "passwords and tokens would cross the network in the open."
        yield checks.Error(f"BERTH_URL is {settings.BERTH_URL}: {text}", hint=hint)
    elif not settings.HTTPS:
        text = "only people on this machine find the site, and links lead nowhere else."
        yield checks.Warning(f"BERTH_URL is {settings.BERTH_URL}: {text}", hint=hint)
    elif not (
        settings.SESSION_COOKIE_SECURE
        and settings.CSRF_COOKIE_SECURE
        and settings.SECURE_HSTS_SECONDS
    ):
        yield checks.Error(
            "Cookies may travel without TLS, or browsers are not told to insist on it.",
            hint="Leave SESSION_COOKIE_SECURE, CSRF_COOKIE_SECURE and SECURE_HSTS_SECONDS as BERTH_URL sets them.",
        )


@_asks(4)
def ask_allowed_hosts() -> Found:
    host = urlsplit(settings.BERTH_URL).hostname or ""
    allowed = [name.strip("[]") for name in settings.ALLOWED_HOSTS]
    if not any(host == name or (name.startswith(".") and host.endswith(name)) for name in allowed):
        yield checks.Error(
            f"ALLOWED_HOSTS does not name {host}, where BERTH_URL says the site is: every request is refused.",
            hint=f"Write ALLOWED_HOSTS={','.join([*settings.ALLOWED_HOSTS, host])}",
        )


@_asks(5)
def ask_database() -> Found:
    if connection.vendor == "sqlite":
        yield checks.Warning(
            "The database is SQLite: one writer at a time, on this machine alone; good for a trial.",
            hint="Write DATABASE_URL=postgres://user:password@host:5432/name for a shared site.",
        )
    try:
        executor = MigrationExecutor(connection)
        missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
        offset_s = (machines.database_now() - clock.now()).total_seconds()
    except DatabaseError as error:
        yield checks.Error(
            f"The database does not answer: {type(error).__name__}.",
            hint="Start it, or correct DATABASE_URL.",
        )
        return
    if missing:
        names = ", ".join(f"{one.app_label}.{one.name}" for one, _ in missing[:3])
        yield checks.Error(
            f"{len(missing)} migrations are not applied: {names}{' …' if len(missing) > 3 else ''}.",
            hint="Run: manage.py migrate",
        )
    if abs(offset_s) > MAX_SKEW_S:
        yield checks.Error(
            f"The database's clock is {offset_s:+.1f} s off from this machine's: slots would begin and end at "
            "two times.",
            hint="Set up NTP on both: timedatectl set-ntp true",
        )


@_asks(6)
def ask_redis() -> Found:
    address = urlsplit(settings.REDIS_URL)
    where = f"{address.hostname}:{address.port or 6379}"
    try:
        with _redis() as server:
            version = str(server.info("server")["redis_version"])
            users = _users(server)
    except redis.RedisError as error:
        yield checks.Error(
            f"Redis at {where} does not answer: {type(error).__name__}. Pages work, but nothing is live and "
            "hosts hear of changes late.",
            hint="Start it, or correct REDIS_URL.",
        )
        return
    if tuple(map(int, version.split(".")[:2])) < _REDIS_AT_LEAST:
        yield checks.Error(
            f"Redis at {where} is {version}; Berth needs 6.2 or newer.", hint="Upgrade Redis."
        )
    if _lets_anybody_in(address.hostname or "", address.port or 6379):
        yield checks.Warning(
            f"Redis at {where} lets anybody in without a password.",
            hint="Load deploy/redis/users.acl and write REDIS_URL=redis://berth:password@…",
        )
    elif users is not None:
        yield from _unknown_hosts(users, where)


@_asks(7)
def ask_static_files() -> Found:
    manifest = getattr(staticfiles_storage, "manifest_name", "")
    if manifest and not staticfiles_storage.exists(manifest):
        yield checks.Error(
            f"Static files are not collected in {settings.STATIC_ROOT}: pages cannot be shown.",
            hint="Run: manage.py collectstatic --noinput",
        )


@_asks(8)
def ask_time_zones() -> Found:
    if "Asia/Shanghai" not in available_timezones():
        yield checks.Error("There is no time zone data.", hint="Run: pip install tzdata")
    if settings.SITE_TIME_ZONE == "UTC":
        yield checks.Info(
            "SITE_TIME_ZONE is UTC: whoever has chosen no zone of their own reads UTC.",
            hint="Write SITE_TIME_ZONE=Europe/Berlin, or wherever the site's people live.",
        )


@_asks(9)
def ask_parts() -> Found:
    """Whether somebody drives what is due: without these two, nobody is warned and nothing is noticed."""
    try:
        stale = pulses.stale(tuple(_UNITS), now=clock.now())
    except DatabaseError:
        return  # said of the database already
    for name, at in stale.items():
        seen = f"was last seen at {at:%Y-%m-%d %H:%M:%S} UTC" if at else "has never been seen"
        yield checks.Warning(
            f"The {_UNITS[name]} {seen}.", hint=f"Run: systemctl enable --now berth-{name}"
        )


@_asks(10)
def ask_operators() -> Found:
    try:
        operators = list(machines.operators())
    except DatabaseError:
        return
    if not operators:
        yield checks.Warning(
            "Nobody is an operator: nobody can manage hosts or is told of trouble.",
            hint="Run: manage.py createsuperuser",
        )
    for one in operators:
        if one.check_password(one.username):
            yield checks.Error(
                f"The password of {one.username}, an operator, is the name itself, as in the demo.",
                hint=f"Run: manage.py changepassword {one.username}",
            )


@_asks(11)
def ask_secrets_on_disk() -> Found:
    path = Path(settings.DATA) / "env"
    if path.exists() and path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        yield checks.Error(
            f"{path} holds secrets and can be read by others.", hint=f"Run: chmod 600 {path}"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _redis(**options: Any) -> "redis.Redis":
    limits: dict[str, Any] = {"socket_timeout": _LIMIT_S, "socket_connect_timeout": _LIMIT_S}
    retry = Retry(NoBackoff(), 0)
    if options:
        return redis.Redis(**options, **limits, retry=retry)
    return redis.Redis.from_url(settings.REDIS_URL, **limits, retry=retry)


def _users(server: "redis.Redis") -> Sequence[str] | None:
    """The names that Redis knows; None if ours may not ask."""
    try:
        names: Any = server.acl_users()
        return list(map(str, names))
    except redis.ResponseError:
        return None


def _lets_anybody_in(host: str, port: int) -> bool:
    try:
        with _redis(host=host, port=port) as server:
            return bool(server.ping())
    except redis.RedisError:
        return False


def _unknown_hosts(users: Sequence[str], where: str) -> Found:
    try:
        names = list(Host.objects.order_by("name").values_list("name", flat=True))
    except DatabaseError:
        return  # said of the database already
    for name in names:
        if f"host-{name}" in users:
            continue
        yield checks.Warning(
            f"Redis at {where} has no user host-{name}: {name} hears of changes with its heartbeat alone.",
            hint=f"Add a line for {name} from deploy/redis/host.acl, then: ACL LOAD",
        )
