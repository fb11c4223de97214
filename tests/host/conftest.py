import ctypes
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.stage import ALICE, grant
from tests.host import scanning
from tests.host.clocks import Hands
from tests.host.control_plane import ControlPlaneDouble
from tests.host.fake_machine import FakeMachine
from tests.host.kit import SimHost
from tests.host.programs import FakePrograms
from tests.host.slot import Bench, make_node
from tests.nvml import stand_in
from tests.nvml.stage import Stage
from workers.host.holders import HolderScan
from workers.host.processes import Processes


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
def node(tmp_path: Path) -> str:
    return scanning.make_node(tmp_path)


@pytest.fixture
def processes() -> Iterator[Processes]:
    made = Processes()
    yield made
    made.close()


@pytest.fixture
def scan(processes: Processes) -> HolderScan:
    """Looks at no other uids than those of the tests: much on a machine keeps /dev/zero open."""
    people = frozenset({scanning.ALICE, scanning.BOB, scanning.CAROL})
    return HolderScan(processes, only_uids=people)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePrograms:
    return FakePrograms(tmp_path / "bin", monkeypatch)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that everybody may enter, and that no other test run closes again."""
    with tempfile.TemporaryDirectory(prefix="berth-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def tmp_path(place: Path) -> Path:
    """People without rights have to reach the nodes in it; pytest's own folder keeps them out."""
    return place


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """Alice has an hour from eleven on. What could not be done must have been expected by the test."""
    made = Bench(make_node(tmp_path), [grant(ALICE)])
    yield made
    made.processes.close()
    assert made.problems == []


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Loaded once: pynvml keeps the first library it meets."""
    path = stand_in.compile_into(tmp_path_factory.mktemp("nvml"))
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    return path


@pytest.fixture
def nvml(nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """NVIDIA's vendor over the stand-in of its library, which says what the test writes."""
    monkeypatch.setenv("NVML_STAND_IN", str(tmp_path / "nvml"))
    stage = Stage(tmp_path, library=nvml_library, hands=Hands())
    yield stage
    stage.close()
