"""Web processes to measure, and a client that keeps its connection as a script does."""

import contextlib
import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.site import ROOT
from reservations import clock
from reservations.models import User
from reservations.services.actors import BERTH
from reservations.services.tokens import issue_token
from tests import servers

START_LIMIT_S = 60


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    took_ms: float


class Caller:
    """One person's script: a token and one connection. For one thread."""

    def __init__(self, port: int, secret: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}

    def connect(self) -> None:
        self._connection.connect()

    def post(self, path: str, body: Mapping[str, Any]) -> Answer:
        content = json.dumps(body)
        began = time.perf_counter()
        self._connection.request("POST", path, content, self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        took_ms = (time.perf_counter() - began) * 1000
        return Answer(response.status, json.loads(answer), took_ms)

    def close(self) -> None:
        self._connection.close()


def token(user: User) -> str:
    return issue_token(user, name="bench", scopes=["book"], actor=BERTH, now=clock.now())[1]


@contextlib.contextmanager
def web(
    application: str = "webapp.asgi",
    *,
    processes: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """The port of that many uvicorn processes, started as `make up` starts its one."""
    port = servers.free_port()
    command = [
        sys.executable, "-m", "uvicorn", f"{application}:application", "--host", "127.0.0.1",
        "--port", str(port), "--workers", str(processes), "--no-access-log", "--log-level", "warning",
        # A crowd may pause for longer than the five seconds after which connections are hung up.
        "--timeout-keep-alive", "75", "--timeout-graceful-shutdown", "3",
        # A starved process is slow, not dead: its parent must not kill it in the middle.
        "--timeout-worker-healthcheck", "60",
    ]  # fmt: skip
    log = Path(os.environ["BERTH_DATA"]) / f"web-{port}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdout=output,
            stderr=output,
        )
    try:
        _wait_until_it_serves(port, process, log)
        yield port
    finally:
        process.terminate()
        process.wait(20)


def _wait_until_it_serves(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    try:
        servers.wait_for_port(port, process, limit_s=START_LIMIT_S)
    except (RuntimeError, TimeoutError) as error:
        raise RuntimeError(f"{error}:\n{log.read_text()[-2000:]}") from error
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_LIMIT_S)
    connection.request("GET", "/livez")
    status = connection.getresponse().status
    connection.close()
    if status != 200:
        raise RuntimeError(f"/livez answers {status}")
