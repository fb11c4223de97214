import pytest
from django.core.cache import caches


@pytest.fixture(autouse=True)
def fresh_counters() -> None:
    caches["throttle"].clear()
