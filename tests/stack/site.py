"""A whole site as real processes on the database of the running test: Redis, web, control worker, beat."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.conf import settings

from reservations.models import Host
from reservations.services import hosts
from reservations.services.actors import BERTH
from tests.build import NOON
from tests.host.kit import SimHost
from tests.servers import free_port, wait_for_port
from tests.waiting import until
from tests.web import database_url
from webapp.embedded import redis_command

CONTROL_PLANE = ("redis", "web", "control", "beat")


class Site:
    """Its parts start and stop by name, at the same addresses each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.redis_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.redis_url = f"redis://127.0.0.1:{self.redis_port}/0"
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, *names: str) -> None:
        for name in names:
            self.run(name, self._command(name), {"DATABASE_URL": database_url()})
        if "redis" in names:
            wait_for_port(self.redis_port, self._running["redis"])
        if "web" in names:
            wait_for_port(self.port, self._running["web"], limit_s=60)

    def run(self, name: str, command: list[str], environment: Mapping[str, str]) -> None:
        with self.log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                command,
                cwd=settings.ROOT,
                env={**os.environ, "REDIS_URL": self.redis_url, **environment},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def stop(self, *names: str, by: signal.Signals = signal.SIGTERM) -> None:
        for name in names:
            self._running[name].send_signal(by)
        for name in names:
            self._running.pop(name).wait(30)

    def send(self, name: str, what: signal.Signals) -> None:
        self._running[name].send_signal(what)

    def stop_all(self) -> None:
        self.stop(*reversed(self._running), by=signal.SIGKILL)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def health(self) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            answer = connection.getresponse()
            return {"http": answer.status, **json.loads(answer.read())}
        finally:
            connection.close()

    def wait_until_healthy(self) -> None:
        until(self._is_healthy, limit_s=120, every_s=0.2)

    def _is_healthy(self) -> bool:
        # While everything starts at once, an answer may take longer than the limit of one look.
        with contextlib.suppress(OSError):
            return bool(self.health()["http"] == 200)
        return False

    def _command(self, name: str) -> list[str]:
        celery = [sys.executable, "-m", "celery", "-A", "webapp.celery"]
        return {
            "redis": [
                *redis_command(), "--port", str(self.redis_port), "--bind", "127.0.0.1",
                "--save", "", "--appendonly", "no", "--dir", str(self.folder),
            ],
            "web": [
                sys.executable, "-m", "uvicorn", "webapp.asgi:application",
                "--port", str(self.port), "--no-access-log",
            ],
            "control": [*celery, "worker", "-Q", "control", "--without-gossip", "--without-mingle"],
            "beat": [*celery, "beat", "--pidfile="],
        }[name]  # fmt: skip


class StackHost(SimHost):
    """A simulated host that is registered at a site and whose worker runs as a process of its own."""

    def __init__(self, folder: Path, site: Site, **settings: Any) -> None:
        super().__init__(folder)
        self.site = site
        short = {"grace_s": 1, "grace_followed_s": 1, "intruder_grace_s": 1, "sample_s": 1}
        self.row, self.token = hosts.add_host(
            self.name,
            actor=BERTH,
            now=NOON,
            mode=Host.Mode.ENFORCE,
            settings={**short, **settings},
        )

    def start_worker(self) -> None:
        told = self.environment(self.site.url, redis_url=self.site.redis_url)
        told |= {"BERTH_HOST_TOKEN": self.token}
        self.site.run("host", [sys.executable, "-m", "workers.host", "run"], told)

    def enable(self) -> None:
        """Once the host has named its devices, let people book them."""
        until(lambda: self.row.devices.count() == len(self.uuids), limit_s=60)
        hosts.enable_devices(self.row, None, actor=BERTH, now=NOON)
