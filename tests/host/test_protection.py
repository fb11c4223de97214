"""Who is never stopped, and that no name helps or harms anybody."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.host.fake_proc import FakeProc, undying
from workers.host.containers import Claim, container_of
from workers.host.processes import Facts, Processes
from workers.host.protection import Bounds, Place, person_of, protection, unit_of

ALICE, BOB = 61001, 61002
BOUNDS = Bounds(own_pids=frozenset({500, 400}), pid_max=4_194_304)
JOB = Facts(pid=700, ppid=1, uid=ALICE, euid=ALICE, start_ticks=5, kernel_thread=False)
HASH = "c0ffee" * 10 + "c0fe"
SLICE_OF_ALICE = f"/user.slice/user-{ALICE}.slice/user@{ALICE}.service/libpod-{HASH}.scope"
# Handed out for use in user namespaces.
SUBORDINATE = 165_536


def why(facts: Facts, *, claim: Claim | None = None, bounds: Bounds = BOUNDS) -> str | None:
    """As the agent judges it, once that much is known about its container."""
    container = container_of(facts.cgroups)
    if container is not None and container.rootless:
        container = None
    return protection(facts, bounds, Place(person_of(facts), container, claim))


def test_an_ordinary_job_is_not_protected() -> None:
    assert why(JOB) is None


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
        replace(JOB, uid=0, euid=0, namespace_owner=0),
        # An account that systemd has made up for a service.
        replace(JOB, uid=62_000, euid=62_000, cgroups=("/system.slice/exporter.service",)),
    ],
    ids=str,
)
def test_the_system_is_never_stopped(facts: Facts) -> None:
    assert why(facts)


@pytest.mark.parametrize(("uid", "euid"), [(ALICE, 0), (0, ALICE), (ALICE, BOB)])
def test_a_person_is_whoever_stands_behind_it(uid: int, euid: int) -> None:
    facts = replace(JOB, uid=uid, euid=euid)

    assert person_of(facts) == ALICE
    assert why(facts) is None


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("/slurm/uid_61001/job_42/step_batch", "slurm/uid_61001/job_42"),
        ("/system.slice/slurmstepd.scope/job_42/step_0/user", "slurmstepd.scope/job_42"),
        ("/system.slice/gpu01_slurmstepd.scope/job_42/step_0", "gpu01_slurmstepd.scope/job_42"),
    ],
)
def test_slurm_jobs_are_left_to_slurm(cgroup: str, unit: str) -> None:
    facts = replace(JOB, cgroups=("/", cgroup))

    assert why(facts)
    assert unit_of(facts) == unit


@pytest.mark.parametrize(
    "name", ["slurmstepd.scope/job_1", "slurm/uid_61001/job_1/step_0", "slurm_gpu/job_1"]
)
def test_a_group_that_a_person_names_like_slurms_protects_nobody(name: str) -> None:
    """Everybody may make groups below their own slice, and call them what they like."""
    below = f"/user.slice/user-{ALICE}.slice/user@{ALICE}.service/app.slice/{name}"
    facts = replace(JOB, cgroups=("/", below))

    assert why(facts) is None
    assert unit_of(facts) is None


def test_a_slurm_job_that_a_login_was_taken_into_is_slurms() -> None:
    login = f"/user.slice/user-{ALICE}.slice/session-4.scope"

    assert why(replace(JOB, cgroups=("/slurm/uid_61001/job_42/step_extern", login)))


@pytest.mark.parametrize("uid", [ALICE, 0])
def test_nobody_in_a_container_is_stopped_before_its_booking_is_known(uid: int) -> None:
    facts = replace(JOB, uid=uid, euid=uid, cgroups=(f"/docker/{HASH}",))

    assert why(facts, claim=None) == "a container whose booking is not known yet"
    assert why(facts, claim=Claim("docker", booking=17)) is None


def test_the_agent_does_not_end_the_container_it_lives_in() -> None:
    facts = replace(JOB, cgroups=(f"/docker/{HASH}",))
    inside = replace(BOUNDS, own_container=HASH)

    assert why(facts, claim=Claim("docker", booking=17), bounds=inside)


@pytest.mark.parametrize(
    "cgroup",
    [
        "/user.slice/user-61001.slice/session-4.scope",
        "/system.slice/jupyter-alice-singleuser.service",
        "/user.slice/user-61001.slice/user@61001.service/app.slice/my-docker-notes.scope",
        "/",
    ],
)
def test_sessions_and_notebooks_are_not_protected(cgroup: str) -> None:
    assert why(replace(JOB, cgroups=(cgroup,))) is None


def test_a_rootless_container_belongs_to_the_person_who_made_its_user_namespace() -> None:
    inside = replace(JOB, uid=SUBORDINATE, euid=SUBORDINATE, namespace_owner=ALICE)

    assert person_of(inside) == ALICE
    assert why(inside) is None
    assert why(replace(inside, cgroups=(SLICE_OF_ALICE,))) is None


def test_a_subordinate_uid_belongs_to_whom_it_was_handed_out() -> None:
    """Also in a namespace that root has made, and to the owner of the slice where no file says."""
    inside = replace(JOB, uid=SUBORDINATE, euid=SUBORDINATE, namespace_owner=0)

    assert person_of(inside, subordinate_owner={SUBORDINATE: BOB}.get) == BOB
    assert person_of(replace(inside, cgroups=(SLICE_OF_ALICE,))) == ALICE


def test_a_subordinate_uid_that_belongs_to_nobody_is_never_stopped() -> None:
    inside = replace(JOB, uid=SUBORDINATE, euid=SUBORDINATE, namespace_owner=0)

    assert person_of(inside) is None
    assert why(inside) == "a uid of a container that is handed out to nobody"


def test_root_of_a_namespace_that_root_has_made_is_root() -> None:
    facts = replace(JOB, uid=0, euid=0, namespace_owner=0)

    assert person_of(facts) == 0


def test_a_high_uid_outside_of_any_namespace_is_a_person() -> None:
    """A directory hands out such uids to people; a range in a file changes nothing about that."""
    facts = replace(JOB, uid=SUBORDINATE, euid=SUBORDINATE)

    assert person_of(facts, subordinate_owner={SUBORDINATE: BOB}.get) == SUBORDINATE
    assert why(facts) is None


def test_a_person_with_such_a_uid_is_one_outside_of_services() -> None:
    facts = replace(JOB, uid=62_000, cgroups=("/user.slice/user-62000.slice/session-1.scope",))

    assert why(facts) is None


def test_a_person_who_is_themselves_in_their_namespace_is_that_person() -> None:
    assert person_of(replace(JOB, namespace_owner=0)) == ALICE


def test_a_notebook_service_is_named_for_people_to_read() -> None:
    facts = replace(JOB, cgroups=("/system.slice/jupyter-alice-singleuser.service",))

    assert unit_of(facts) == "jupyter-alice-singleuser.service"


@pytest.mark.parametrize("comm", ["Xorg", "nvidia-persistenced", "dockerd", "a) R 0 0", "systemd"])
def test_a_name_protects_nobody(tmp_path: Path, comm: str) -> None:
    FakeProc(tmp_path).add(700, comm=comm)
    facts = Processes(tmp_path, open_pidfd=undying).look(700)

    assert facts is not None
    assert why(facts) is None


@pytest.mark.parametrize("comm", ["xmrig", "q7", "node_exporter"])
def test_a_name_nobody_knows_hides_nobody(tmp_path: Path, comm: str) -> None:
    """Whoever it is, uid and device decide."""
    FakeProc(tmp_path).add(700, comm=comm, uid=BOB)
    facts = Processes(tmp_path, open_pidfd=undying).look(700)

    assert facts is not None
    assert (person_of(facts), why(facts)) == (BOB, None)
