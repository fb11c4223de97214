"""Stopping what starts processes again: in a thread, one at a time, and only what is a unit's name."""

import os
import threading
import time
from pathlib import Path

import pytest

from reservations.core.enforcement import Keeper
from tests.waiting import until
from workers.host import units
from workers.host.units import UnitStops

CONTAINER = Keeper(engine="docker", name="3f" * 32)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on PATH in which every program writes down that it ran, and then waits to be let go."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.mkfifo(tmp_path / "gate")
    for name in ("docker", "systemctl"):
        program = folder / name
        program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/ran\nread line < {tmp_path}/gate\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return tmp_path


def ran(folder: Path) -> int:
    return len((folder / "ran").read_text().splitlines()) if (folder / "ran").exists() else 0


def any_under_way() -> bool:
    return any(thread.name == "unit-stop" for thread in threading.enumerate())


def let_go(folder: Path) -> None:
    with (folder / "gate").open("w") as gate:
        gate.write("\n")


def test_a_stop_holds_nobody_up_and_is_not_repeated_while_it_is_under_way(programs: Path) -> None:
    stops = UnitStops()

    began = time.monotonic()
    for _ in range(3):
        stops.stop(CONTAINER, device="GPU-a", grace_s=15)
    assert time.monotonic() - began < 1
    until(lambda: ran(programs) == 1)
    let_go(programs)

    # Once it has ended, whatever the unit has started since is stopped by a stop of its own.
    until(lambda: not any_under_way())
    stops.stop(CONTAINER, device="GPU-a", grace_s=15)
    until(lambda: ran(programs) == 2)
    let_go(programs)
    until(lambda: not any_under_way())
    assert stops.problems() == []


def test_a_manager_that_hangs_is_given_up_and_said_so_until_nobody_is_left(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(units, "MARGIN_S", 0.2)
    stops = UnitStops()

    stops.stop(CONTAINER, device="GPU-a", grace_s=0.1)

    (problem,) = until(stops.problems)
    assert (problem.code, problem.device) == ("unit_not_stopped", "GPU-a")
    assert "no answer within 0.3 s" in problem.text
    stops.keep_only({"GPU-a"})
    assert stops.problems() == [problem]
    stops.keep_only(set())
    assert stops.problems() == []


@pytest.mark.parametrize("name", ["*", "a?.service", "[ab].service", "--all", "", "a b", "a\nb"])
def test_what_is_no_name_of_one_unit_is_never_handed_to_a_manager(
    programs: Path, name: str
) -> None:
    stops = UnitStops()

    stops.stop(Keeper(engine="systemd", name=name), device="GPU-a", grace_s=1)

    (problem,) = until(stops.problems)
    assert "no name of a unit" in problem.text
    assert ran(programs) == 0


def test_a_manager_that_is_not_there_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    stops = UnitStops()

    stops.stop(CONTAINER, device="GPU-a", grace_s=1)

    (problem,) = until(stops.problems)
    assert "docker is not installed" in problem.text
