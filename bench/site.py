"""What every part of the bench measures on: a migrated PostgreSQL of its own, and one Redis for all."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from tests import servers

ROOT = Path(__file__).resolve().parent.parent
_TEMPLATE = "template_berth"


@dataclass(frozen=True)
class Site:
    """``quick`` parts measure less often, on less data; their figures only show that they work."""

    folder: Path
    quick: bool

    def much(self, full: int, quick: int) -> int:
        return quick if self.quick else full


class Servers:
    """PostgreSQL and Redis of one bench. Each part gets a database that nobody has touched."""

    def __init__(self, postgres_url: str, redis_url: str, folder: Path) -> None:
        self._postgres_url = postgres_url
        self._folder = folder
        self._common = {
            **os.environ,
            "SECRET_KEY": "a key for measurements only",
            "BERTH_DATA": str(folder),
            "REDIS_URL": redis_url,
            "DJANGO_SETTINGS_MODULE": "webapp.settings",
            "API_REQUESTS_PER_MINUTE": "100000000",
            "LOG_LEVEL": "ERROR",
        }
        (folder / "static").mkdir()
        self._create(_TEMPLATE)
        migrate(self._environment(_TEMPLATE))

    def environment_of(self, part: str) -> dict[str, str]:
        """The environment of a part, with a database of its own."""
        name = f"bench_{part.replace('-', '_')}"
        self._create(name, template=_TEMPLATE)
        return self._environment(name)

    def drop(self, part: str) -> None:
        self._execute(f"DROP DATABASE bench_{part.replace('-', '_')} WITH (FORCE)")

    def _environment(self, database: str) -> dict[str, str]:
        url, _, _ = self._postgres_url.rpartition("/")
        return {**self._common, "DATABASE_URL": f"{url}/{database}"}

    def _create(self, name: str, *, template: str = "template0") -> None:
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._postgres_url, autocommit=True) as connection:
            connection.execute(statement)


@contextlib.contextmanager
def servers_in(folder: Path) -> Iterator[Servers]:
    with servers.redis_server() as redis_url, servers.postgres_server() as postgres_url:
        yield Servers(postgres_url, redis_url, folder)


def migrate(environment: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "migrate", "--skip-checks", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
