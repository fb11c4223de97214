"""What starts a process again, with real cgroups and a systemctl that says what a test wants."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reservations.core.enforcement import Keeper
from tests.host.cgroups import cgroup, move
from tests.host.people import child, wait_for_ever
from tests.host.programs import FakePrograms
from workers.host import keepers
from workers.host.asker import NoAnswerError
from workers.host.keepers import Kept, Unit, ask_systemd, is_all_of, unit_in

ALICE, BOB = 61001, 61002
MANAGER = f"/user.slice/user-{ALICE}.slice/user@{ALICE}.service"
SLICE = f"/berth-test-{os.getpid()}.slice"
TRAIN = Unit("train.service", f"{SLICE}/train.service")
root_only = pytest.mark.root


def shown(restart: str = "always", *, group: str = TRAIN.cgroup, refuses: str = "no") -> str:
    return f"Restart={restart}\nRefuseManualStop={refuses}\nControlGroup={group}\n"


def idle(ready: Callable[[], None]) -> None:
    ready()
    wait_for_ever()


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("/system.slice/train.service", Unit("train.service", "/system.slice/train.service")),
        (
            "/system.slice/train.service/worker/1",
            Unit("train.service", "/system.slice/train.service"),
        ),
        (
            "/system.slice/jupyter-alice-singleuser.service",
            Unit(
                "jupyter-alice-singleuser.service", "/system.slice/jupyter-alice-singleuser.service"
            ),
        ),
        (
            f"{MANAGER}/app.slice/train.service",
            Unit("train.service", f"{MANAGER}/app.slice/train.service", ALICE),
        ),
    ],
)
def test_a_service_is_the_outermost_of_its_manager(path: str, unit: Unit) -> None:
    assert unit_in(("/", path)) == unit


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/system.slice/cron.service",
        "/system.slice/crond.service",
        "/system.slice/atd.service",
        "/system.slice/ssh.service",
        "/system.slice/sshd.service",
        "/system.slice/system-sshd.slice/sshd@0-10.0.0.5:22-10.0.0.9:51000.service",
        "/system.slice/system-getty.slice/getty@tty1.service",
        "/system.slice/system-serial\\x2dgetty.slice/serial-getty@ttyS0.service",
        "/user.slice/user-61001.slice/session-4.scope",
        MANAGER,
        f"{MANAGER}/init.scope",
        f"{MANAGER}/app.slice/dbus.service",
        f"{MANAGER}/app.slice/tmux-spawn-1.scope",
        "/../system.slice/train.service",
    ],
)
def test_sessions_logins_and_what_many_share_are_never_named(path: str) -> None:
    assert unit_in((path,)) is None


@root_only
def test_a_service_that_restarts_and_is_one_persons_is_named(programs: FakePrograms) -> None:
    programs.answers("systemctl", shown())
    with (
        cgroup(f"{TRAIN.cgroup}/inner") as inner,
        child(ALICE, idle) as one,
        child(ALICE, idle) as two,
    ):
        move(one.pid, inner.parent)
        move(two.pid, inner)

        assert ask_systemd(TRAIN, ALICE) == Kept(Keeper(engine="systemd", name="train.service"))
        assert programs.asked("systemctl") == [
            "show --property=Restart,ControlGroup,RefuseManualStop -- train.service"
        ]


@root_only
def test_a_persons_own_manager_is_asked_about_their_services(programs: FakePrograms) -> None:
    unit = Unit("train.service", TRAIN.cgroup, owner=ALICE)
    programs.answers("systemctl", shown("on-failure"))
    with cgroup(unit.cgroup) as folder, child(ALICE, idle) as one:
        move(one.pid, folder)

        keeper = Keeper(engine="systemd", name="train.service", owner=ALICE)
        assert ask_systemd(unit, ALICE) == Kept(keeper)
        assert programs.asked("systemctl")[0].startswith(f"--user --machine={ALICE}@.host show ")


@root_only
@pytest.mark.parametrize(
    "answer",
    [
        shown("no"),
        shown(group="/system.slice/another.service"),
        shown(refuses="yes"),
        "",
        "Restart=always\n",
        "Hello\n\n==\n",
    ],
    ids=["restarts not", "another group", "refuses", "silent", "half an answer", "nonsense"],
)
def test_a_service_that_does_not_restart_or_is_another_is_not_named(
    programs: FakePrograms, answer: str
) -> None:
    programs.answers("systemctl", answer)
    with cgroup(TRAIN.cgroup) as folder, child(ALICE, idle) as one:
        move(one.pid, folder)

        assert ask_systemd(TRAIN, ALICE) == Kept()


@root_only
@pytest.mark.parametrize("other", [BOB, 0])
def test_a_service_with_somebody_elses_process_in_it_is_not_named(
    programs: FakePrograms, other: int
) -> None:
    programs.answers("systemctl", shown())
    with cgroup(f"{TRAIN.cgroup}/inner") as inner, child(ALICE, idle) as one:
        move(one.pid, inner.parent)
        with child(other, idle) as foreign:
            move(foreign.pid, inner)
            assert ask_systemd(TRAIN, ALICE) == Kept()
            assert ask_systemd(TRAIN, other) == Kept()
        assert ask_systemd(TRAIN, ALICE) != Kept()


@root_only
def test_a_setuid_program_in_it_is_somebody_elses(programs: FakePrograms) -> None:
    def as_root_for_alice(ready: Callable[[], None]) -> None:
        os.setreuid(ALICE, 0)
        idle(ready)

    with (
        cgroup(TRAIN.cgroup) as folder,
        child(ALICE, idle) as one,
        child(0, as_root_for_alice) as two,
    ):
        move(one.pid, folder)
        assert is_all_of(ALICE, TRAIN.cgroup)
        move(two.pid, folder)
        assert not is_all_of(ALICE, TRAIN.cgroup)


@root_only
def test_a_cgroup_that_is_empty_or_gone_is_nobodys() -> None:
    assert not is_all_of(ALICE, "/nowhere/train.service")
    with cgroup(TRAIN.cgroup):
        assert not is_all_of(ALICE, TRAIN.cgroup)


def test_a_systemctl_that_fails_hangs_or_is_missing_is_no_answer(
    programs: FakePrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.refuses("systemctl", "System has not been booted with systemd as init system")
    with pytest.raises(NoAnswerError, match="not been booted"):
        ask_systemd(TRAIN, ALICE)

    monkeypatch.setattr(keepers, "LIMIT_S", 0.2)
    programs.hangs("systemctl")
    with pytest.raises(NoAnswerError, match=r"no answer within 0\.2 s"):
        ask_systemd(TRAIN, ALICE)

    programs.only()
    (Path(os.environ["PATH"]) / "systemctl").unlink()
    with pytest.raises(NoAnswerError, match="not installed"):
        ask_systemd(TRAIN, ALICE)
