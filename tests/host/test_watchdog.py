"""What systemd hears of the agent: ready, alive, and nothing from one that no longer ticks."""

import os
import select
import signal
import socket

import pytest

from tests.host.control_plane import grant
from tests.waiting import until
from workers.host import status
from workers.host.watchdog import Watchdog


class Systemd:
    """Its end of the socket."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)

    def hears(self, limit_s: float = 10.0) -> list[str]:
        """The lines of the next message; nothing if none comes."""
        if not select.select([self._socket], [], [], limit_s)[0]:
            return []
        return self._socket.recv(4096).decode().splitlines()

    def forget(self) -> None:
        while self.hears(0):
            pass

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def systemd(tmp_path, monkeypatch):
    # In the abstract namespace: a path may be too long for a socket.
    made = Systemd(f"@berth-test-{os.getpid()}-{tmp_path.name}")
    monkeypatch.setenv("NOTIFY_SOCKET", made.address)
    yield made
    made.close()


def test_an_agent_is_ready_with_its_first_tick_and_alive_with_every_other(sim, plane, systemd):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    agent = sim.agent(plane.url)

    first = systemd.hears()
    assert first[:2] == ["READY=1", "WATCHDOG=1"]
    until(lambda: "STATUS=mode enforce, 1 grants in force" in " ".join(systemd.hears()))
    systemd.forget()
    assert systemd.hears()[0] == "WATCHDOG=1"

    agent.stop()
    until(lambda: systemd.hears() == ["STOPPING=1"])


def test_an_agent_whose_ticks_fail_feeds_no_watchdog(sim, plane, systemd, monkeypatch):
    agent = sim.agent(plane.url)
    assert systemd.hears()
    failed = []

    def fails():
        failed.append(True)
        raise OSError("no")

    monkeypatch.setattr(agent, "tick", fails)
    agent.wake()
    until(lambda: failed)
    systemd.forget()
    until(lambda: len(failed) > 2)

    assert systemd.hears(0) == []
    monkeypatch.undo()
    assert systemd.hears()[0] == "WATCHDOG=1"


@pytest.mark.parametrize("broker", [False, True])
def test_the_worker_as_a_process_tells_systemd_with_a_broker_and_without(
    sim, plane, redis_url, systemd, broker
):
    worker = sim.worker(plane.url, redis_url=redis_url if broker else "", systemd=systemd.address)

    assert systemd.hears(20)[0] == "READY=1"
    assert until(lambda: status.is_running(sim.state_dir))
    worker.send_signal(signal.SIGTERM)
    until(lambda: systemd.hears() == ["STOPPING=1"])
    assert worker.wait(20) == 0


def test_without_systemd_nothing_is_sent_and_nothing_fails(tmp_path):
    Watchdog({}).alive("fine")


def test_a_systemd_that_is_gone_is_told_again_that_the_agent_is_ready(tmp_path):
    address = f"@berth-test-{os.getpid()}-{tmp_path.name}"
    watchdog = Watchdog({"NOTIFY_SOCKET": address})
    watchdog.alive("nobody hears")
    systemd = Systemd(address)

    watchdog.alive("fine")

    assert systemd.hears(0) == ["READY=1", "WATCHDOG=1", "STATUS=fine"]
    systemd.close()
