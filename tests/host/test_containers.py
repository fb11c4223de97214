"""Which container a process runs in, and for which booking its engine says it was started."""

import json
from pathlib import Path

import pytest

from tests.host.programs import FakePrograms
from tests.waiting import until
from workers.host import containers
from workers.host.asker import NoAnswerError
from workers.host.containers import Claim, Container, Engines, booking_in, container_of

HASH = "c0ffee" * 10 + "c0fe"
OTHER = "beef" * 16
POD = "pod12345678_1234_1234_1234_123456789abc"
USER = "/user.slice/user-61001.slice/user@61001.service"
DOCKER = Container(id=HASH, name=f"docker-{HASH}", engines=("docker",), rootless=False)
ANY = Container(id=HASH, name=HASH, engines=("docker", "podman"), rootless=False)


def inspected(labels: dict[str, str] | None, *, container: str = HASH) -> str:
    return json.dumps([{"Id": container, "Config": {"Labels": labels, "User": ""}, "State": {}}])


@pytest.mark.parametrize(
    ("cgroup", "engines"),
    [
        (f"/system.slice/docker-{HASH}.scope", ("docker",)),
        (f"/docker/{HASH}", ("docker",)),
        (f"/gpu.slice/docker-{HASH}.scope/init", ("docker",)),
        (f"/machine.slice/libpod-{HASH}.scope", ("podman",)),
        (f"/machine.slice/libpod-{HASH}.scope/container", ("podman",)),
        (f"/system.slice/train.service/libpod-payload-{HASH}", ("podman",)),
        (f"/lab/{HASH}", ("docker", "podman")),
        (f"/kubepods.slice/kubepods-burstable-{POD}.slice/cri-containerd-{HASH}.scope", ()),
        (f"/kubepods/besteffort/{POD}/crio-{HASH}", ()),
        (f"/kubepods/besteffort/{POD}/{HASH}", ()),
        (f"/system.slice/containerd.service/kubepods-{POD}.slice:cri-containerd:{HASH}", ()),
        (f"/system.slice/nerdctl-{HASH}.scope", ()),
    ],
)
def test_a_container_is_known_by_the_id_in_its_path(cgroup: str, engines: tuple[str, ...]) -> None:
    found = container_of(("/", cgroup))

    assert found is not None
    assert (found.id, found.engines, found.rootless) == (HASH, engines, False)


def test_a_pod_without_a_container_of_its_own_is_known_by_the_pod() -> None:
    found = container_of((f"/kubepods.slice/kubepods-{POD}.slice",))

    assert found is not None
    assert (found.id, found.engines) == (POD, ())


def test_of_containers_within_each_other_the_outermost_is_the_machines() -> None:
    inner = container_of((f"/docker/{HASH}/docker/{OTHER}",))
    cluster = container_of((f"/docker/{HASH}/kubelet/kubepods/besteffort/{POD}/{OTHER}",))

    assert inner is not None
    assert cluster is not None
    assert (inner.id, inner.engines) == (cluster.id, cluster.engines) == (HASH, ("docker",))


def test_a_container_below_a_user_slice_is_rootless() -> None:
    found = container_of((f"{USER}/user.slice/libpod-{HASH}.scope/container",))

    assert found is not None
    assert found.rootless


def test_a_session_inside_of_a_container_makes_it_nobodys() -> None:
    """A whole system may run in a container, and its people are not those of the machine."""
    inside = "user.slice/user-61001.slice/session-1.scope"
    found = container_of((f"/system.slice/docker-{HASH}.scope/{inside}",))

    assert found is not None
    assert not found.rootless


@pytest.mark.parametrize(
    "cgroup",
    [
        "/",
        "/user.slice/user-61001.slice/session-4.scope",
        f"{USER}/app.slice/docker-notes.scope",
        f"{USER}/user.slice/libpod-conmon-{HASH}.scope",
        f"/machine.slice/libpod-conmon-{HASH}.scope",
        f"/lab/{HASH[:-1]}",
        f"/lab/{HASH}0",
        "/system.slice/jupyter-alice-singleuser.service",
    ],
)
def test_nothing_else_is_a_container(cgroup: str) -> None:
    assert container_of((cgroup,)) is None


@pytest.mark.parametrize(
    ("label", "booking"),
    [
        ("17", 17),
        ("0", None),
        ("-3", None),
        ("017", None),
        ("17 ", None),
        ("\u0661\u0667", None),
        ("9" * 19, None),
        ("", None),
        ("bob's", None),
    ],
)
def test_only_a_plain_number_names_a_booking(label: str, booking: int | None) -> None:
    assert booking_in({"berth.booking": label}) == booking
    assert booking_in({"something.else": label}) is None


def test_an_engine_says_for_which_booking_a_container_was_started(programs: FakePrograms) -> None:
    programs.answers("docker", inspected({"berth.booking": "17", "a": "b"}))

    assert Engines().ask(DOCKER) == Claim("docker", 17)
    assert programs.asked("docker") == [f"inspect --type container {HASH}"]


@pytest.mark.parametrize("labels", [{}, None, {"berth.booking": "soon"}])
def test_a_container_without_the_label_belongs_to_no_booking(
    programs: FakePrograms, labels: dict[str, str] | None
) -> None:
    programs.answers("docker", inspected(labels))

    assert Engines().ask(DOCKER) == Claim("docker", None)


def test_the_engine_that_knows_it_is_found(programs: FakePrograms) -> None:
    programs.refuses("docker", f"Error response from daemon: No such container: {HASH}")
    programs.answers("podman", inspected({"berth.booking": "4"}))

    assert Engines().ask(ANY) == Claim("podman", 4)


def test_an_engine_that_is_not_installed_has_no_containers(programs: FakePrograms) -> None:
    programs.answers("podman", inspected(None))
    programs.add("cat", '/bin/cat "$@"')
    programs.only()

    assert Engines().ask(ANY) == Claim("podman", None)


def test_a_container_that_no_engine_knows_belongs_to_nobody(programs: FakePrograms) -> None:
    programs.refuses("docker", f"Error: No such container: {HASH}")

    assert Engines().ask(DOCKER) == Claim()


@pytest.mark.parametrize(
    "answer",
    ["", "[]", "{}", "null", '[{"Id": 5}]', inspected({}, container=OTHER), "Hello", "\x00\xff"],
)
def test_an_answer_that_makes_no_sense_is_none(programs: FakePrograms, answer: str) -> None:
    programs.answers("docker", answer)

    with pytest.raises(NoAnswerError, match="docker does not say"):
        Engines().ask(DOCKER)


def test_a_daemon_that_does_not_run_is_no_answer(programs: FakePrograms) -> None:
    programs.refuses(
        "docker", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."
    )

    with pytest.raises(NoAnswerError, match="Cannot connect"):
        Engines().ask(DOCKER)


def test_an_engine_that_is_missing_is_no_answer(programs: FakePrograms) -> None:
    programs.only()

    with pytest.raises(NoAnswerError, match="docker is not installed"):
        Engines().ask(DOCKER)


def test_an_engine_that_hangs_is_killed_with_its_children_and_left_alone(
    programs: FakePrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(containers, "LIMIT_S", 0.3)
    programs.hangs("docker")
    programs.answers("podman", inspected(None))
    engines = Engines()

    for _ in range(3):
        with pytest.raises(NoAnswerError, match=r"no answer within 0\.3 s"):
            engines.ask(DOCKER)

    assert len(programs.asked("docker")) == 1
    pid = int(programs.pid_file("docker").read_text())
    until(lambda: not members_of_group(pid))


def members_of_group(group: int) -> list[str]:
    def group_of(stat: Path) -> int | None:
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" else int(fields[2])

    return [str(one) for one in Path("/proc").glob("[0-9]*/stat") if group_of(one) == group]
