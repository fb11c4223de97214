"""A simulated host with real jobs and a real agent, for tests."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from reservations.core.enforcement import GateState
from reservations.core.wire import HostSettings
from tests.host.control_plane import TOKEN
from workers.host.agent import Agent
from workers.host.clock import HostClock
from workers.host.config import Config
from workers.host.gates.record import RecordGate
from workers.host.simulation import SimulatedHost

ROOT = Path(__file__).resolve().parents[2]
# Jobs end by themselves after this long, should a test die.
JOB_LIMIT_S = "90"


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that has ended and waits for its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


class SimHost:
    """The simulated host ``sim-a`` with people alice, bob and carol, in a folder of its own."""

    name = "sim-a"

    def __init__(self, folder: Path, *, devices: int = 2) -> None:
        # As it lies under $BERTH_DATA.
        self.data = folder
        self.root = folder / "sim"
        self.state_dir = self.root / self.name
        self.simjob(
            "prepare", "--host", self.name, "--devices", str(devices), "--users", "alice,bob,carol"
        )
        self.simulated = SimulatedHost(self.state_dir)
        self.uuids = [device.uuid for device in self.simulated.devices()]
        self.settings = HostSettings(
            mode="enforce",
            managed=tuple(self.uuids),
            grace_s=2,
            grace_followed_s=1,
            intruder_grace_s=1,
            sample_s=1,
        )
        self._agents: list[Agent] = []
        self._workers: list[subprocess.Popen[bytes]] = []

    def simjob(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "workers.host.simjob", *arguments, "--state-root", self.root],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )

    def job(self, person: str, index: int = 0, profile: str = "train") -> int:
        done = self.simjob(
            "start", "--user", person, "--host", self.name, "--index", str(index),
            "--profile", profile, "--seconds", JOB_LIMIT_S,
        )  # fmt: skip
        return int(json.loads(done.stdout.splitlines()[-1])["pid"])

    def config(self, url: str, **fields: object) -> Config:
        values = {"host": self.name, "url": url, "token": TOKEN, "state_dir": self.state_dir}
        return Config(**{**values, "vendor": "simulated", "gate": "record", **fields})

    def agent(self, url: str, *, clock: HostClock | None = None, **fields: object) -> Agent:
        """Started; stopped when the test ends."""
        agent = Agent(self.config(url, **fields), clock=clock, leave=lambda code: None)
        self._agents.append(agent)
        agent.start()
        return agent

    def worker(
        self, url: str, *, redis_url: str = "", systemd: str = ""
    ) -> "subprocess.Popen[bytes]":
        """``berth-host run`` as a process of its own; killed when the test ends."""
        with (self.root / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "workers.host", "run"],
                cwd=ROOT,
                env=self.environment(url, redis_url=redis_url) | {"NOTIFY_SOCKET": systemd},
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._workers.append(process)
        return process

    def environment(self, url: str, *, redis_url: str = "") -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "a.module.that.is.not.there",
            "BERTH_HOST_NAME": self.name,
            "BERTH_URL": url,
            "BERTH_HOST_TOKEN": TOKEN,
            "BERTH_STATE_DIR": str(self.state_dir),
            "BERTH_RUN_DIR": str(self.state_dir / "run"),
            "BERTH_VENDOR": "simulated",
            "BERTH_GATE": "record",
            "REDIS_URL": redis_url,
        }

    def gate(self, index: int = 0) -> GateState:
        state = RecordGate(self.state_dir / "gate.json", self.uuids).observe()[self.uuids[index]]
        if state is None:
            raise AssertionError("the gate cannot be read")
        return state

    def granted(self, person: str, index: int = 0) -> bool:
        """Whether the gate names the person; also before the first look everybody may open it."""
        return self.simulated.users()[person] in self.gate(index).uids

    def may_open(self, person: str, index: int = 0) -> bool:
        state = self.gate(index)
        return state.group_open or self.simulated.users()[person] in state.uids

    def close(self) -> None:
        for agent in self._agents:
            agent.stop()
        for worker in self._workers:
            if worker.poll() is None:
                worker.kill()
            worker.wait(10)
        for job in self.simulated.jobs():
            kill(job.pid)


def kill(pid: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        select.select([pidfd], [], [], 5)
    except ProcessLookupError:
        return
    finally:
        os.close(pidfd)
