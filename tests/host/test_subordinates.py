"""Whose subordinate uids are whose."""

import os
import threading
from pathlib import Path

import pytest

from tests.waiting import until
from workers.host import subordinates
from workers.host.subordinates import Subordinates

ALICE, BOB = 61001, 61002


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch) -> None:
    uids = {"alice": ALICE, "bob": BOB}
    monkeypatch.setattr(subordinates, "_uid_of", lambda name: uids.get(name))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "subuid"
    path.write_text(f"alice:100000:65536\n{BOB}:165536:10\nleft:300000:65536\n")
    return path


@pytest.mark.usefixtures("people")
def test_ranges_are_read_by_name(file: Path) -> None:
    known = Subordinates(file)

    assert until(lambda: known.owner_of(100_000)) == ALICE
    assert known.owner_of(165_535) == ALICE
    assert known.owner_of(99_999) is None


def test_a_range_may_be_given_to_a_number(file: Path) -> None:
    known = Subordinates(file)

    assert until(lambda: known.owner_of(165_536)) == BOB
    assert known.owner_of(165_546) is None


@pytest.mark.usefixtures("people")
def test_a_range_of_somebody_who_is_unknown_is_nobodys(file: Path) -> None:
    known = Subordinates(file)

    until(lambda: known.owner_of(100_000))
    assert known.owner_of(300_000) is None


@pytest.mark.usefixtures("people")
def test_lines_that_make_no_sense_are_passed_over(file: Path) -> None:
    file.write_text("# nothing\n\n:5:5\nbob:x:5\nbob:5\nbob:1:2:3\nalice:100000:1\n")
    known = Subordinates(file)

    assert until(lambda: known.owner_of(100_000)) == ALICE
    assert known.owner_of(5) is None


@pytest.mark.usefixtures("people")
def test_a_change_of_the_file_is_seen_and_no_file_is_no_ranges(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subordinates, "LOOK_EVERY_S", 0.0)
    known = Subordinates(file)
    until(lambda: known.owner_of(100_000))

    file.write_text("bob:100000:1\n")
    os.utime(file, ns=(1, 1))
    until(lambda: known.owner_of(100_000) == BOB)

    file.unlink()
    until(lambda: known.owner_of(100_000) is None)


def test_a_name_service_that_hangs_holds_nobody_up(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()

    def hang(name: str) -> int:
        answers.wait(10)
        return ALICE

    monkeypatch.setattr(subordinates, "_uid_of", hang)
    known = Subordinates(file)

    assert known.owner_of(100_000) is None
    answers.set()
    assert until(lambda: known.owner_of(100_000)) == ALICE
