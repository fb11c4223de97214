"""The whole site for one test, as processes; everything of it ends with the test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.site import CONTROL_PLANE, Site, StackHost


@pytest.fixture
def site(tmp_path: Path, transactional_db: None) -> Iterator[Site]:
    made = Site(tmp_path)
    try:
        made.start(*CONTROL_PLANE)
        made.wait_until_healthy()
        yield made
    finally:
        made.stop_all()


@pytest.fixture
def host(site: Site, tmp_path: Path) -> Iterator[StackHost]:
    """A simulated host of the site; its worker starts when the test says so."""
    made = StackHost(tmp_path / "sim", site)
    try:
        yield made
    finally:
        made.close()
