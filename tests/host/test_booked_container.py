"""A container that was started for a booking: it stays until that ends, and is then stopped through its engine."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.stage import at, grant
from tests.host.cgroups import cgroup, move
from tests.host.people import Child, child
from tests.host.programs import FakePrograms
from tests.host.scanning import ALICE, BOB, holding
from tests.host.two_devices import FIRST, Host
from tests.waiting import until
from workers.host.processes import Processes

pytestmark = pytest.mark.root
CONTAINER = f"{os.getpid():x}".rjust(64, "d")
BOOKING = 17


@pytest.fixture
def host(tmp_path: Path, processes: Processes) -> Host:
    grants = [
        grant(ALICE, booking=BOOKING, device=FIRST),
        grant(BOB, start=at(hours=1), booking=18, device=FIRST),
    ]
    return Host(tmp_path, processes, grants)


@pytest.fixture
def root_inside(host: Host) -> Iterator[Child]:
    """Root in a container of the machine's docker, on the device, heard of by the driver's list."""
    with (
        cgroup(f"/docker-{CONTAINER}.scope") as folder,
        child(0, holding(host.nodes[FIRST])) as one,
    ):
        move(one.pid, folder)
        host.listed = {FIRST: [one.pid]}
        yield one


def engine(programs: FakePrograms, pid: int, *, label: str) -> None:
    """Says the label, and ends that process when it is asked to stop the container."""
    labels = {"berth.booking": label}
    said = json.dumps([{"Id": CONTAINER, "Config": {"Labels": labels}}])
    programs.add("docker", f"[ $1 = inspect ] && echo '{said}' || kill -USR2 {pid}")


def until_attributed(host: Host) -> None:
    def known() -> bool:
        holders = host.observe(at(0))[FIRST].holders or ()
        return [holder.protected for holder in holders] == [None]

    until(known)


def test_it_stays_while_its_booking_runs_and_is_stopped_through_its_engine_at_the_end(
    host: Host, programs: FakePrograms, root_inside: Child
) -> None:
    engine(programs, root_inside.pid, label=str(BOOKING))
    host.tick(at(0))
    until_attributed(host)

    host.tick(at(minutes=30))
    assert not root_inside.ended()
    host.tick(at(hours=1))

    assert root_inside.reap() == signal.SIGUSR2
    (stop,) = (asked for asked in programs.asked("docker") if not asked.startswith("inspect"))
    assert stop.startswith("stop ")
    assert stop.endswith(CONTAINER)
    assert "overrun" in host.done


def test_one_of_no_booking_is_reported_and_stays(
    host: Host, programs: FakePrograms, root_inside: Child
) -> None:
    engine(programs, root_inside.pid, label="of nobody")
    host.tick(at(0))
    until_attributed(host)

    host.tick(at(minutes=30))
    host.tick(at(hours=1))

    assert not root_inside.ended()
    assert "intruder" in host.done
    assert all(asked.startswith("inspect") for asked in programs.asked("docker"))


def test_one_whose_engine_says_nothing_stays(
    host: Host, programs: FakePrograms, root_inside: Child
) -> None:
    programs.refuses("docker", "Cannot connect to the Docker daemon")
    for hours in (0, 0.5, 1, 2):
        host.tick(at(hours=hours))

    assert not root_inside.ended()
    assert "overrun" not in host.done
