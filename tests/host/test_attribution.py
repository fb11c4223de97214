"""Whose the holders of a device are: real processes in real cgroups, engines that say what a test wants."""

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reservations.core.enforcement import Holder, Keeper
from tests.host.cgroups import cgroup, move
from tests.host.people import Child, child
from tests.host.programs import FakePrograms
from tests.host.scanning import ALICE, BOB, GIB, found, holding, look, sample
from tests.waiting import until
from workers.host import containers
from workers.host.holders import HolderScan
from workers.host.processes import Processes

pytestmark = pytest.mark.root
# One of its own for each run: several may share the machine.
CONTAINER = f"{os.getpid():x}".rjust(64, "c")
DOCKER = f"/docker-{CONTAINER}.scope"
ROOTLESS = f"/user.slice/user-{ALICE}.slice/libpod-{CONTAINER}.scope"
SERVICE = f"/berth-test-{os.getpid()}.slice/train.service"


@pytest.fixture
def contained(node: str) -> Iterator[Child]:
    """A job of Alice's uid in a container of the machine's docker."""
    with cgroup(DOCKER) as folder, child(ALICE, holding(node)) as one:
        move(one.pid, folder)
        yield one


def says(label: str | None) -> str:
    labels = {} if label is None else {"berth.booking": label}
    return json.dumps([{"Id": CONTAINER, "Config": {"Labels": labels}}])


def the_holder(scan: HolderScan, node: str, pid: int) -> Holder:
    holders = look(scan, node, sample(pid)) or ()
    return next(holder for holder in holders if holder.pid == pid)


def test_a_containers_process_belongs_to_the_booking_of_its_label(
    scan: HolderScan, node: str, programs: FakePrograms, contained: Child
) -> None:
    programs.answers("docker", says("17"))

    holder = until(lambda: known(the_holder(scan, node, contained.pid)))

    assert (holder.container, holder.booking, holder.protected) == (CONTAINER, 17, None)
    assert holder.keeper == Keeper(engine="docker", name=CONTAINER)
    assert holder.unit == f"docker-{CONTAINER}"
    for _ in range(3):
        the_holder(scan, node, contained.pid)
    assert len(programs.asked("docker")) == 1


def known(holder: Holder) -> Holder | None:
    return holder if holder.protected is None else None


def test_root_in_a_booked_container_is_the_bookings_and_no_system_account(
    processes: Processes, node: str, programs: FakePrograms
) -> None:
    programs.answers("docker", says("17"))
    with cgroup(DOCKER) as folder, child(0, holding(node)) as one:
        move(one.pid, folder)
        # Only looked at because the list names it: root may have opened much.
        scan = HolderScan(processes, only_uids=frozenset({ALICE}))

        holder = until(lambda: known(the_holder(scan, node, one.pid)))
        assert (holder.uid, holder.booking) == (0, 17)


def test_a_container_without_a_label_belongs_to_no_booking(
    scan: HolderScan, node: str, programs: FakePrograms, contained: Child
) -> None:
    programs.answers("docker", says(None))

    holder = until(lambda: known(the_holder(scan, node, contained.pid)))

    assert (holder.container, holder.booking) == (CONTAINER, None)
    assert holder.keeper == Keeper(engine="docker", name=CONTAINER)


def test_an_engine_that_hangs_holds_nobody_up_and_protects_its_containers(
    scan: HolderScan,
    node: str,
    programs: FakePrograms,
    contained: Child,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(containers, "LIMIT_S", 0.5)
    programs.hangs("docker")
    with child(BOB, holding(node)) as other:
        began = time.monotonic()
        seen = {one.pid: one.protected for one in look(scan, node, sample(other.pid)) or ()}
        assert time.monotonic() - began < 0.4
        assert seen == {
            contained.pid: "a container whose booking is not known yet",
            other.pid: None,
        }
        (problem,) = until(lambda: looked(scan, node) and scan.problems())
    assert problem.text == (
        "docker does not say for which bookings its containers were started: no answer within 0.5 s"
    )
    for _ in range(5):
        look(scan, node, sample())
    assert caplog.text.count("no answer within") == 1
    assert the_holder(scan, node, contained.pid).protected


def looked(scan: HolderScan, node: str) -> bool:
    look(scan, node, sample())
    return True


def test_a_rootless_container_is_its_persons_whatever_its_labels_say(
    scan: HolderScan, node: str, programs: FakePrograms
) -> None:
    """Else anybody could write another's booking into a label, and stay."""
    for engine in ("docker", "podman"):
        programs.answers(engine, says("17"))
    with cgroup(ROOTLESS) as folder, child(ALICE, holding(node)) as one:
        move(one.pid, folder)
        holder = the_holder(scan, node, one.pid)
        looked(scan, node)

        assert (holder.uid, holder.container, holder.booking) == (ALICE, None, None)
        assert holder.protected is None
        assert holder.unit == f"libpod-{CONTAINER}"
        assert programs.asked("docker") == programs.asked("podman") == []


def test_workers_in_one_container_use_what_its_first_process_uses(
    processes: Processes, node: str, programs: FakePrograms
) -> None:
    """Though their uids differ."""
    programs.answers("docker", says("17"))

    def start(ready: Callable[[], None]) -> None:
        os.open(node, os.O_RDWR)
        if os.fork() == 0:
            os.setuid(BOB)
            holding(node)(ready)
        threading.Event().wait()

    with cgroup(DOCKER) as folder, child(0, start) as one:
        for pid in [one.pid, *children_of(one.pid)]:
            move(pid, folder)
        scan = HolderScan(processes, only_uids=frozenset({0, BOB}))
        (worker,) = children_of(one.pid)

        assert the_uses(scan, node, one.pid)[worker]


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def the_uses(scan: HolderScan, node: str, pid: int) -> dict[int, bool]:
    return found(look(scan, node, sample(pid, used_bytes=GIB)))


def test_a_service_that_restarts_its_job_is_named_as_its_keeper(
    scan: HolderScan, node: str, programs: FakePrograms
) -> None:
    programs.answers("systemctl", f"Restart=always\nControlGroup={SERVICE}\n")
    with cgroup(SERVICE) as folder, child(ALICE, holding(node)) as one:
        move(one.pid, folder)
        assert the_holder(scan, node, one.pid).keeper is None

        keeper = until(lambda: the_holder(scan, node, one.pid).keeper)
        assert keeper == Keeper(engine="systemd", name="train.service")


def test_nothing_is_asked_about_who_is_protected(
    processes: Processes, node: str, programs: FakePrograms
) -> None:
    programs.answers("systemctl", f"Restart=always\nControlGroup={SERVICE}\n")
    with cgroup(SERVICE) as folder, child(999, holding(node)) as one:
        move(one.pid, folder)
        scan = HolderScan(processes, only_uids=frozenset({999}))
        assert the_holder(scan, node, one.pid).protected

        assert the_holder(scan, node, one.pid).keeper is None
        assert programs.asked("systemctl") == []
