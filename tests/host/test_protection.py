"""Who is never stopped, and that no name helps or harms anybody."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.fake_proc import FakeProc, undying
from workers.host.processes import Facts, Processes
from workers.host.protection import Bounds, person_of, protection, unit_of

ALICE = 61001
BOUNDS = Bounds(own_pids=frozenset({500, 400}), pid_max=4_194_304)
JOB = Facts(pid=700, ppid=1, uid=ALICE, euid=ALICE, start_ticks=5, kernel_thread=False)
HASH = "c0ffee" * 10 + "c0fe"
POD = "pod12345678_1234_1234_1234_123456789abc"


def test_an_ordinary_job_is_not_protected() -> None:
    assert protection(JOB, BOUNDS) is None


@pytest.mark.parametrize(
    "facts",
    [
        replace(JOB, pid=0),
        replace(JOB, pid=1),
        replace(JOB, pid=-5),
        replace(JOB, pid=4_194_304),
        replace(JOB, pid=400),
        replace(JOB, pid=500),
        replace(JOB, kernel_thread=True),
        replace(JOB, uid=0, euid=0),
        replace(JOB, uid=112, euid=112),
        replace(JOB, uid=999, euid=0),
        replace(JOB, uid=65534, euid=65534),
    ],
    ids=str,
)
def test_the_system_is_never_stopped(facts: Facts) -> None:
    assert protection(facts, BOUNDS)


@pytest.mark.parametrize(("uid", "euid"), [(ALICE, 0), (0, ALICE), (ALICE, 61002)])
def test_a_person_is_whoever_stands_behind_it(uid: int, euid: int) -> None:
    facts = replace(JOB, uid=uid, euid=euid)

    assert person_of(facts) == ALICE
    assert protection(facts, BOUNDS) is None


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        (f"/system.slice/docker-{HASH}.scope", f"docker-{HASH}"),
        (f"/docker/{HASH}", f"docker/{HASH}"),
        (f"/kubepods.slice/{POD}.slice/cri-containerd-{HASH}.scope", None),
        (f"/kubepods/besteffort/{POD}/crio-{HASH}", None),
        (f"/machine.slice/libpod-{HASH}.scope", f"libpod-{HASH}"),
        ("/slurm/uid_61001/job_42/step_batch", "slurm/uid_61001/job_42"),
        ("/system.slice/slurmstepd.scope/job_42/step_0/user", "slurmstepd.scope/job_42"),
    ],
)
def test_containers_and_slurm_jobs_are_left_to_their_owners(cgroup: str, unit: str | None) -> None:
    facts = replace(JOB, cgroups=("/", cgroup))

    assert protection(facts, BOUNDS)
    assert unit_of(facts)
    if unit:
        assert unit_of(facts) == unit


@pytest.mark.parametrize(
    "cgroup",
    [
        "/user.slice/user-61001.slice/session-4.scope",
        "/system.slice/jupyter-alice-singleuser.service",
        "/user.slice/user-61001.slice/user@61001.service/app.slice/my-docker-notes.scope",
        "/",
    ],
)
def test_sessions_and_notebooks_are_not(cgroup: str) -> None:
    assert protection(replace(JOB, cgroups=(cgroup,)), BOUNDS) is None


def test_a_rootless_container_belongs_to_the_owner_of_its_slice() -> None:
    slice_of_alice = f"/user.slice/user-{ALICE}.slice/user@{ALICE}.service/libpod-{HASH}.scope"
    inside = replace(JOB, uid=165_536, euid=165_536, cgroups=(slice_of_alice,))

    assert person_of(inside) == ALICE
    assert protection(inside, BOUNDS) is None


def test_a_notebook_service_is_named_for_people_to_read() -> None:
    facts = replace(JOB, cgroups=("/system.slice/jupyter-alice-singleuser.service",))

    assert unit_of(facts) == "jupyter-alice-singleuser.service"


@pytest.mark.parametrize("comm", ["Xorg", "nvidia-persistenced", "dockerd", "a) R 0 0", "systemd"])
def test_a_name_protects_nobody(tmp_path: Path, comm: str) -> None:
    FakeProc(tmp_path).add(700, comm=comm)
    facts = Processes(tmp_path, open_pidfd=undying).look(700)

    assert facts is not None
    assert protection(facts, BOUNDS) is None
