"""Whose the agent's folder is: with one that others may write into, they could have it write anywhere."""

import os
from pathlib import Path

import pytest

from tests.host import nodes
from tests.host.people import as_person, let_everybody_into
from workers.host.agent import Agent
from workers.host.config import Config, ConfigError

pytestmark = pytest.mark.root


def agent(folder: Path) -> Agent:
    return Agent(
        Config(
            host="gpu-01",
            url="http://127.0.0.1:9",
            token="t",
            state_dir=folder,
            vendor="tests.host.nodes:open_vendor",
            gate="acl",
        )
    )


@pytest.fixture
def open_place(tmp_path: Path) -> Path:
    let_everybody_into(tmp_path)
    tmp_path.chmod(0o1777)
    return tmp_path


def test_a_folder_that_somebody_else_has_made_is_refused_and_led_nowhere(open_place: Path) -> None:
    precious = open_place / "precious"
    precious.write_text("precious")
    folder = open_place / "state"

    def prepare() -> None:
        folder.mkdir()
        for name in ("status.json.tmp", "plan.json.tmp", "agent.lock", "spool.jsonl"):
            os.symlink(precious, folder / name)

    as_person(61001, prepare)

    with pytest.raises(ConfigError, match="others may write"):
        agent(folder).once()
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("mode", [0o777, 0o757])
def test_a_folder_that_everybody_may_write_into_is_refused(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)

    with pytest.raises(ConfigError, match="others may write"):
        agent(tmp_path)


def test_a_folder_that_is_made_is_for_nobody_else(open_place: Path) -> None:
    folder = open_place / "var" / "berth"
    folder.parent.mkdir()

    agent(folder)
    (folder / nodes.LISTED).write_text("[]")

    assert folder.stat().st_mode & 0o077 == 0
