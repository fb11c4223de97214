"""The suite's real servers and its environment, ready before Django reads its settings.

Loaded as an early pytest plugin (`-p tests.environment`). `BERTH_TEST_DB=postgres` runs on a PostgreSQL
from the wheel, started here; otherwise on a SQLite file. Redis is real in both cases.
"""

import contextlib
import os
import tempfile

from tests import servers

_stack = contextlib.ExitStack()


def _prepare() -> None:
    folder = _stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-test-"))
    os.environ.setdefault("SECRET_KEY", "a key for tests only")
    os.environ["BERTH_DATA"] = folder
    # WhiteNoise warns of a missing folder, and warnings are errors here.
    os.mkdir(os.path.join(folder, "static"))
    os.environ["REDIS_URL"] = _stack.enter_context(servers.redis_server())
    if os.environ.get("BERTH_TEST_DB") == "postgres":
        os.environ["DATABASE_URL"] = _stack.enter_context(servers.postgres_server())
    else:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/berth.sqlite3"
    # Playwright's synchronous API keeps a loop running in the main thread.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


_prepare()


def pytest_unconfigure() -> None:
    _stack.close()
