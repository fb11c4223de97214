"""A vendor whose devices are real device nodes and whose process lists a test writes: `open_vendor`."""

import json
from pathlib import Path

from reservations.core.wire import DeviceInfo, HealthProblem, ProcessUse, Sample
from workers.host.clock import HostClock
from workers.host.config import Config

LISTED = "listed.json"
NODE = "node"
# Files of these names say that the device drives a display, and that it has been divided.
DISPLAY, DIVIDED = "display", "divided"
UUID = "GPU-node"


class NodeVendor:
    name = "nodes"
    lists_processes = True
    trusts_uids = False

    def __init__(self, folder: Path, clock: HostClock) -> None:
        self._folder = folder
        self._clock = clock

    def devices(self) -> tuple[DeviceInfo, ...]:
        paths = (str(self._folder / NODE),)
        display = (self._folder / DISPLAY).exists()
        divided = (self._folder / DIVIDED).exists()
        return (
            DeviceInfo(
                uuid=UUID, vendor=self.name, index=0, model="A node",
                node_paths=paths, display=display, divided=divided,
            ),
        )  # fmt: skip

    def sample(self, uuid: str) -> Sample:
        pids = json.loads((self._folder / LISTED).read_text())
        processes = tuple(ProcessUse(pid=pid) for pid in pids if Path(f"/proc/{pid}").exists())
        return Sample(uuid=uuid, at=self._clock.now(), processes=processes)

    def problems(self) -> list[HealthProblem]:
        return []

    def close(self) -> None:
        pass


def open_vendor(config: Config, clock: HostClock) -> NodeVendor:
    return NodeVendor(config.state_dir, clock)
