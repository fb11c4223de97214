from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.host.control_plane import ControlPlaneDouble
from tests.host.fake_machine import FakeMachine
from tests.host.kit import SimHost


@pytest.fixture
def sim(tmp_path: Path) -> Iterator[SimHost]:
    host = SimHost(tmp_path)
    yield host
    host.close()


@pytest.fixture
def plane(sim: SimHost) -> Iterator[ControlPlaneDouble]:
    with ControlPlaneDouble(sim.name) as double:
        double.settings = sim.settings
        yield double


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)
