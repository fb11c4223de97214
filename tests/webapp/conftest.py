from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.test import Client

from reservations.models import User


@pytest.fixture(scope="session")
def static_files() -> None:
    """The pages name their files by their hashes."""
    call_command("collectstatic", "--noinput", "--verbosity", "0")


@pytest.fixture
def signed_in(static_files: None, db: None) -> Callable[[User], Client]:
    def client_of(person: User) -> Client:
        client = Client()
        client.force_login(person)
        return client

    return client_of
