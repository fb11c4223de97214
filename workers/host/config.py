"""The worker's configuration, from the environment. A wrong value stops the start with one sentence.

BERTH_HOST_NAME     the name under which the control plane knows this host
BERTH_URL           where the control plane answers; https, or http on loopback only
BERTH_HOST_TOKEN    this host's token (or BERTH_HOST_TOKEN_FILE, a file that holds it)
BERTH_STATE_DIR     stored plan, spool, ladder and lock [/var/lib/berth]
BERTH_RUN_DIR       devices.json, which everybody on the host may read [/run/berth]
BERTH_VENDOR        nvidia, simulated, or module:function [nvidia]
BERTH_GATE          acl, bpf, record, or module:function [acl]
BERTH_SLICES        control groups on which bpf has the kernel keep leases, with commas [user.slice]
BERTH_LIMITS        a TOML file that may only tighten the plan's settings [/etc/berth/host.toml]
REDIS_URL           the broker that carries nudges; without it the heartbeat does
"""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from reservations.core.wire import HostSettings, Mode
from workers.host.files import others_may_write

STATE_DIR = Path("/var/lib/berth")
RUN_DIR = Path("/run/berth")
ENVIRONMENT_FILE = Path("/etc/berth/host.env")
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_STRICTNESS: tuple[Mode, ...] = ("observe", "warn", "enforce")


class ConfigError(RuntimeError):
    """The worker cannot start with this configuration; the text says which value and why."""


class LocalLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the host's own administrator holds back, whatever the plan says."""

    mode: Mode = "enforce"
    managed: tuple[str, ...] | None = None
    exempt_uids: tuple[int, ...] = ()

    def tighten(self, settings: HostSettings) -> HostSettings:
        """The same settings, with no more power over this host than both sides grant."""
        managed = settings.managed
        if self.managed is not None:
            managed = tuple(uuid for uuid in managed if uuid in self.managed)
        return msgspec.structs.replace(
            settings,
            mode=min(settings.mode, self.mode, key=_STRICTNESS.index),
            managed=managed,
            exempt_uids=tuple(sorted({*settings.exempt_uids, *self.exempt_uids})),
        )


class Config(msgspec.Struct, frozen=True, kw_only=True):
    host: str
    url: str
    token: str
    state_dir: Path
    # None: nothing is published.
    run_dir: Path | None = None
    vendor: str = "nvidia"
    gate: str = "acl"
    slices: tuple[str, ...] = ("user.slice",)
    redis_url: str = ""
    local: LocalLimits = LocalLimits()


def environment(environ: Mapping[str, str], path: Path = ENVIRONMENT_FILE) -> dict[str, str]:
    """With what the service's own file sets, for whoever is not started by systemd. ``environ`` wins.

    Its lines are NAME=value; quotes around a value are not part of it.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith(("#", ";")))
    named = {name.strip(): value.strip().strip("\"'") for name, equals, value in pairs if equals}
    return {**named, **environ}


def read(environ: Mapping[str, str]) -> Config:
    """The whole configuration.

    Raises:
        ConfigError: a value is missing or wrong.
    """
    host = environ.get("BERTH_HOST_NAME", "")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", host):
        raise ConfigError(f"BERTH_HOST_NAME={host!r}: expected the host's name in Berth")
    found = with_limits(read_local(environ), environ)
    url, token = _url(environ.get("BERTH_URL", "")), _token(environ)
    return msgspec.structs.replace(found, url=url, token=token)


def read_local(environ: Mapping[str, str]) -> Config:
    """As far as it concerns this machine alone, without its limits; nobody can be asked with it."""
    return Config(
        host=environ.get("BERTH_HOST_NAME", ""),
        url="",
        token="",
        state_dir=Path(environ.get("BERTH_STATE_DIR") or STATE_DIR).absolute(),
        run_dir=Path(environ.get("BERTH_RUN_DIR") or RUN_DIR).absolute(),
        vendor=environ.get("BERTH_VENDOR", "nvidia"),
        gate=environ.get("BERTH_GATE", "acl"),
        slices=slices(environ),
        redis_url=environ.get("REDIS_URL", ""),
    )


def with_limits(config: Config, environ: Mapping[str, str]) -> Config:
    """The same with what the host's own administrator holds back.

    Raises:
        ConfigError: the file with the local limits cannot be used.
    """
    return msgspec.structs.replace(config, local=_limits(environ))


def prepare_state_dir(config: Config) -> None:
    """Makes the state folder where there is none.

    Raises:
        ConfigError: others may write into it: they could lead every file that is written there elsewhere.
    """
    folder = config.state_dir
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    # On a simulated host nobody has any rights to lose.
    if config.vendor != "simulated" and others_may_write(folder.stat()):
        raise ConfigError(
            f"BERTH_STATE_DIR={folder}: others may write into it; "
            f"chown root {folder} && chmod 700 {folder}, and look what lies in it"
        )


def _url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return url.rstrip("/")
    if parts.scheme == "http" and parts.hostname in LOOPBACK:
        return url.rstrip("/")
    if parts.scheme == "http":
        # Whoever sits between could write the plan, and the plan says whose processes end.
        raise ConfigError(f"BERTH_URL={url}: plain http is accepted on loopback only; use https")
    raise ConfigError(f"BERTH_URL={url!r}: expected https://…")


def _token(environ: Mapping[str, str]) -> str:
    token = environ.get("BERTH_HOST_TOKEN", "")
    if path := environ.get("BERTH_HOST_TOKEN_FILE"):
        try:
            token = Path(path).read_text().strip()
        except OSError as error:
            raise ConfigError(f"BERTH_HOST_TOKEN_FILE={path}: {error.strerror}") from error
    if not token:
        raise ConfigError("BERTH_HOST_TOKEN is not set; `manage.py add_host NAME` prints one")
    if not token.isascii() or not token.isprintable():
        raise ConfigError("BERTH_HOST_TOKEN holds characters that no token has")
    return token


def slices(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names below the mount of control groups, or whole paths."""
    named = environ.get("BERTH_SLICES", "user.slice").split(",")
    return tuple(one.strip() for one in named if one.strip())


def _limits(environ: Mapping[str, str]) -> LocalLimits:
    named = environ.get("BERTH_LIMITS")
    path = Path(named or "/etc/berth/host.toml")
    if not named and not path.exists():
        return LocalLimits()
    try:
        return msgspec.toml.decode(path.read_bytes(), type=LocalLimits)
    except (OSError, msgspec.DecodeError) as error:
        # Going on without it would do what the administrator has forbidden.
        raise ConfigError(f"BERTH_LIMITS={path} cannot be used: {error}") from error
