"""A host of eight stand-in NVIDIA devices: real nodes and ACLs, the unmodified pynvml, people without accounts.

``python -m bench.gpu_host`` is `berth-host run` on it: all of the real worker but two things that a
machine without GPUs and accounts lacks. The vendor's nodes lie in a folder, and u61001 is uid 61001.
"""

import contextlib
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from bench.site import ROOT
from reservations.core.wire import DeviceInfo, HostSettings
from tests.host.control_plane import TOKEN
from tests.nvml import stand_in
from workers.host import agent, cli
from workers.host.clock import HostClock
from workers.host.config import Config
from workers.host.vendors.nvidia import NvidiaVendor

DEVICES = 8
NAME = "gpu-01"
NODES = "nodes"
UUIDS = tuple(f"GPU-{number:08d}" for number in range(DEVICES))
# Devices that can really be opened here; the others have NVIDIA's numbers and no driver behind them.
OPENED = {0: (1, 7), 1: (1, 5), 2: (1, 8), 3: (1, 9)}
_NVIDIA_MAJOR = 195
# Nobody ever hears who this is.
HANGS = "hangs"


class GpuHost:
    """Made below ``folder``; the worker runs in a process of its own."""

    def __init__(self, folder: Path) -> None:
        if os.geteuid() != 0:
            raise SystemExit("a host with nodes and people of its own needs root")
        self.state_dir = folder
        self.library = stand_in.compile_into(folder / "lib").parent
        self.state = folder / "nvml.txt"
        (folder / NODES).mkdir()
        for number in range(DEVICES):
            node = self.node(number)
            os.mknod(node, stat.S_IFCHR, os.makedev(*OPENED.get(number, (_NVIDIA_MAJOR, number))))
            node.chmod(0o660)
        self.listed({})
        self.settings = HostSettings(mode="enforce", managed=UUIDS)

    def node(self, number: int) -> Path:
        return self.state_dir / NODES / f"nvidia{number}"

    def listed(self, pids: dict[int, Iterable[int]]) -> None:
        """What the library says: the processes on each device, by its number."""
        lines = []
        for number, uuid in enumerate(UUIDS):
            lines.append(stand_in.gpu(uuid, minor=number, bus=f"00000000:{number + 1:02X}:00.0"))
            lines += [f"proc {pid} {2**30}" for pid in pids.get(number, ())]
        stand_in.write(self.state, *lines)

    def environment(self, url: str = "") -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "LD_LIBRARY_PATH": str(self.library),
            "NVML_STAND_IN": str(self.state),
            "NVML_STAND_IN_POLL_MS": "1000",
            "BERTH_HOST_NAME": NAME,
            "BERTH_URL": url,
            "BERTH_HOST_TOKEN": TOKEN,
            "BERTH_STATE_DIR": str(self.state_dir),
            "BERTH_RUN_DIR": str(self.state_dir / "run"),
            "BERTH_VENDOR": "bench.gpu_host:open_vendor",
            "BERTH_GATE": "acl",
        }

    @contextlib.contextmanager
    def worker(self, url: str, *, redis_url: str = "") -> "Iterator[subprocess.Popen[bytes]]":
        environment = {**self.environment(url), "REDIS_URL": redis_url}
        with (self.state_dir / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "bench.gpu_host"],
                cwd=ROOT, env=environment, stdout=log, stderr=log,
            )  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


class _OnNodes(NvidiaVendor):
    def __init__(self, clock: HostClock, nodes: Path) -> None:
        super().__init__(clock)
        self._nodes = nodes

    def devices(self) -> tuple[DeviceInfo, ...]:
        return tuple(
            msgspec.structs.replace(one, node_paths=(str(self._nodes / f"nvidia{one.minor}"),))
            for one in super().devices()
        )


def open_vendor(config: Config, clock: HostClock) -> NvidiaVendor:
    return _OnNodes(clock, config.state_dir / NODES)


class _Numbered:
    """u61001 is uid 61001."""

    def uid_of(self, unix_name: str) -> int | None:
        if unix_name == HANGS:
            threading.Event().wait()
        return int(unix_name.removeprefix("u"))

    def name_of(self, uid: int) -> str | None:
        return f"u{uid}"


if __name__ == "__main__":
    agent.open_users = lambda config: _Numbered()
    sys.exit(cli.main(["run"]))
