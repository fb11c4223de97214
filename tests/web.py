"""The real web server, as a child process on the database of the running test."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from tests import servers, waiting


def database_url() -> str:
    """The URL of the database that the test uses, for processes that it starts."""
    told = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{told['NAME']}"
    return f"postgres://{quote(told['USER'])}@{told['HOST']}:{told['PORT']}/{quote(told['NAME'])}"


@contextlib.contextmanager
def web_server(log: Path, *, workers: int = 1, **environment: str) -> Iterator[str]:
    """Its address, once all workers serve. What it says goes to ``log``."""
    port = servers.free_port()
    command = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--port", str(port)]
    command += ["--workers", str(workers), "--log-level", "info", "--no-access-log"]
    environ = {**os.environ, "DATABASE_URL": database_url(), **environment}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=settings.ROOT, env=environ, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        waiting.until(lambda: _serving(log, process, workers), limit_s=60)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


def _serving(log: Path, process: "subprocess.Popen[bytes]", workers: int) -> bool:
    if process.poll() is not None:
        raise RuntimeError(log.read_text())
    return log.read_text().count("Application startup complete") >= workers
