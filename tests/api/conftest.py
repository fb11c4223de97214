import pytest
from django.core.cache import caches

from reservations.models import Device, User
from tests import build


@pytest.fixture(autouse=True)
def fresh_counters() -> None:
    caches["throttle"].clear()


@pytest.fixture
def alice(db: None) -> User:
    return build.person("alice")


@pytest.fixture
def device(db: None) -> Device:
    return build.device()
