import os

import pytest

from tests import capabilities


@pytest.fixture(scope="session")
def redis_url() -> str:
    return os.environ["REDIS_URL"]


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """Give SQLite a test database that is a file: threads and child processes cannot share memory."""
    from django.conf import settings

    database = settings.DATABASES["default"]
    if database["ENGINE"].endswith("sqlite3"):
        database.setdefault("TEST", {})["NAME"] = os.path.join(
            os.environ["BERTH_DATA"], "test.sqlite3"
        )


def pytest_runtest_setup(item: pytest.Item) -> None:
    capabilities.require(item)
