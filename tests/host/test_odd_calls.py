"""What root may mistype on a host, and what others put in root's way."""

import fcntl
import os
from datetime import UTC, datetime

import pytest

from reservations.core.wire import Hold
from tests.host.people import as_person, let_everybody_into
from tests.host.test_by_hand import Terminal
from workers.host import status
from workers.host.by_hand import HandFile

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def root(sim):
    return Terminal(sim)


def nothing_is_said(sim):
    return HandFile(sim.state_dir).read().revision == 0


@pytest.mark.parametrize("user", ["²", "٣", "4294967295", "9" * 23, "-1", "", "al\udcffice"])
def test_nobody_is_given_a_device_who_cannot_be_anybody(sim, root, user):
    assert "Traceback" not in root.types("grant", "--for", "1h", "--", user, "0", code=2)
    assert nothing_is_said(sim)


def test_a_hold_of_no_time_is_not_one_for_ever(sim, root):
    assert "berth-host resume" in root.types("hold", "--for", "0", code=2)
    assert nothing_is_said(sim)


def test_what_root_writes_as_a_reason_cannot_command_a_terminal(sim, root):
    root.types("hold", "--reason", "fan\x1b[2J\udcff is loud")

    assert HandFile(sim.state_dir).read().hold == Hold(reason="fan[2J is loud")


def test_a_state_folder_that_is_none_holds_nothing(sim, root, tmp_path):
    """Else a slip of the finger looks like a hold."""
    for folder in (tmp_path / "missing", tmp_path / "file"):
        (tmp_path / "file").touch()
        assert "no folder" in root.types("hold", "--state-dir", str(folder), code=2)
    assert not (tmp_path / "missing").exists()


def test_a_broken_file_of_limits_keeps_nobody_from_a_hold(sim, tmp_path):
    limits = tmp_path / "host.toml"
    limits.write_text("mode = ")
    root = Terminal(sim, BERTH_LIMITS=str(limits))

    root.types("hold")
    assert HandFile(sim.state_dir).read().hold
    root.types("resume")
    # Whoever would set a gate has to know them.
    assert "BERTH_LIMITS" in root.types("release-host", code=2)


@pytest.mark.root
@pytest.mark.parametrize("name", ["by_hand.lock", "agent.lock"])
def test_nobody_else_can_hold_the_locks(sim, root, tmp_path, name):
    """A lock needs no more than the right to read, and would keep root out for ever."""
    let_everybody_into(sim.state_dir)
    root.types("adopt")

    def lock():
        try:
            descriptor = os.open(sim.state_dir / name, os.O_RDONLY)
        except PermissionError:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return True

    assert not as_person(61001, lock)


def test_what_others_have_named_cannot_command_roots_terminal():
    hold = Hold(reason="\x1b]0;owned\x07\u202e upgrade")
    problem = {"code": "held", "text": f"held until resumed ({hold.reason})"}
    seen = status.Status(
        host="gpu-01",
        at=NOON,
        mode="enforce",
        health=(status.HealthProblem(**problem),),
    )

    words = status.in_words(seen, running=True, now=NOON)

    assert "problem: held until resumed (]0;owned upgrade)" in words
    assert "\ndevices:\n" in words
    assert words.replace("\n", "").isprintable()
