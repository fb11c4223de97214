"""Messages on real pseudo terminals, as root."""

import contextlib
import os
import stat
import termios
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.screens import Screen
from tests.waiting import until
from workers.host import terminals
from workers.host.terminals import Terminals, write

pytestmark = pytest.mark.root
# Of no other test: everybody with such a uid on this machine is told.
ALICE, BOB = 61901, 61902


@pytest.fixture
def screen():
    with contextlib.ExitStack() as opened:

        def make(uid, **how):
            made = Screen(uid, **how)
            opened.callback(made.close)
            return made

        yield make


def test_a_message_reaches_every_terminal_of_its_person_and_nobody_elses(screen):
    alices, bobs = [screen(ALICE), screen(ALICE)], screen(BOB)
    assert write(ALICE, ["your booking ends soon"]) == 2
    assert [one.shown() for one in alices] == [b"\r\n\ayour booking ends soon\r\n"] * 2
    assert bobs.shown() == b""


def test_mesg_n_does_not_keep_it_away(screen):
    alices = screen(ALICE)
    alices.path.chmod(0o600)
    assert write(ALICE, ["hear"]) == 1


def test_a_full_terminal_is_passed_over_without_waiting(screen):
    full, other = screen(ALICE), screen(ALICE)
    full.fill()
    begun = time.monotonic()
    assert write(ALICE, ["hear"]) == 1
    assert time.monotonic() - begun < 1
    assert b"hear" in other.shown()


def test_a_stopped_terminal_is_passed_over(screen):
    stopped = screen(ALICE)
    termios.tcflow(stopped.outer, termios.TCOOFF)
    assert write(ALICE, ["hear"]) == 0


def test_a_terminal_whose_window_has_gone_is_passed_over(screen):
    gone, other = screen(ALICE), screen(ALICE)
    os.close(gone.inner)
    assert write(ALICE, ["hear"]) == 1
    assert b"hear" in other.shown()


@settings(deadline=None)
@given(text=st.text(max_size=300))
def test_no_text_commands_a_terminal(text):
    alices = Screen(ALICE)
    try:
        write(ALICE, [text])
        shown = alices.shown()
    finally:
        alices.close()
    assert shown.startswith(b"\r\n\a")
    lines = shown[3:].decode().split("\r\n")
    assert all(line.isprintable() and len(line) <= 400 for line in lines)


def test_a_terminal_that_does_not_speak_utf_8_gets_ascii(screen):
    """Bytes of UTF-8 are control characters there: this letter ends in CSI."""
    alices = screen(ALICE, utf8=False)
    write(ALICE, ["ě[2J"])
    assert alices.shown() == b"\r\n\a?[2J\r\n"


def test_lines_are_folded_and_an_address_is_not(screen):
    alices = screen(ALICE)
    address = "https://berth.example/" + "x" * 80
    write(ALICE, ["word " * 30 + address])
    lines = alices.shown().decode().split("\r\n")
    assert address in lines
    assert all(len(line) <= 78 for line in lines if line != address)


def test_only_the_terminals_used_last_are_written_when_there_are_very_many(screen, monkeypatch):
    monkeypatch.setattr(terminals, "MAX_TERMINALS", 1)
    old, new = screen(ALICE), screen(ALICE)
    os.utime(old.path, (1, 1))
    write(ALICE, ["hear"])
    assert (old.shown(), b"hear" in new.shown()) == (b"", True)


@pytest.fixture
def trap(tmp_path):
    """A folder that is taken for /dev/pts."""
    return tmp_path


def told_in(folder):
    return write(ALICE, ["hear"], [(folder, r"\d+")])


def test_a_symlink_in_the_place_of_a_terminal_is_not_followed(trap, screen):
    alices = screen(ALICE)
    (trap / "0").symlink_to(alices.path)
    os.chown(trap / "0", ALICE, ALICE, follow_symlinks=False)
    assert told_in(trap) == 0
    # Nor if it takes that place after the folder was read.
    assert terminals._open(trap / "0", ALICE) is None
    assert alices.shown() == b""


@pytest.mark.parametrize("kind", ["fifo", "file", "null", "unknown"])
def test_what_is_no_terminal_is_not_written(trap, kind):
    place = trap / "0"
    match kind:
        case "fifo":
            os.mkfifo(place)
        case "file":
            place.touch()
        case "null":
            os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        case "unknown":
            os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(136, 200_000))
    os.chown(place, ALICE, ALICE)
    reading = os.open(place, os.O_RDONLY | os.O_NONBLOCK) if kind in {"fifo", "file"} else None
    assert told_in(trap) == 0
    if reading is not None:
        assert os.read(reading, 100) == b""
        os.close(reading)


def test_a_name_that_is_none_of_a_terminal_is_left_alone(trap, screen):
    alices = screen(ALICE)
    os.mknod(trap / "ptmx", stat.S_IFCHR | 0o666, alices.path.stat().st_rdev)
    os.chown(trap / "ptmx", ALICE, ALICE)
    assert told_in(trap) == 0


def test_a_terminal_that_changes_hands_while_it_is_opened_is_not_written(screen, monkeypatch):
    alices = screen(ALICE)
    really = os.open

    def opens_late(path, flags, *args, **named):
        if str(path).startswith("/proc/self/fd/"):
            os.chown(alices.path, BOB, 5)
        return really(path, flags, *args, **named)

    monkeypatch.setattr(terminals.os, "open", opens_late)
    assert write(ALICE, ["hear"]) == 0
    assert alices.shown() == b""


def test_no_descriptor_is_left_behind_and_none_becomes_the_controlling_terminal(screen):
    screen(ALICE)
    before = os.listdir("/proc/self/fd")
    write(ALICE, ["hear"])
    assert os.listdir("/proc/self/fd") == before
    controlling = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[4]
    assert os.major(int(controlling)) not in range(136, 144)


def test_whoever_says_something_never_waits_for_the_terminals(screen, monkeypatch):
    alices = screen(ALICE)
    entered, go_on = threading.Event(), threading.Event()
    really = terminals.write

    def slow(uid, lines, folders):
        entered.set()
        go_on.wait(10)
        return really(uid, lines, folders)

    monkeypatch.setattr(terminals, "write", slow)
    voice = Terminals()
    voice.start()
    voice.say(ALICE, ["first"])
    assert entered.wait(10)
    begun = time.monotonic()
    for _ in range(2 * terminals.MAX_WAITING):
        voice.say(BOB, ["more"])
    assert time.monotonic() - begun < 1
    go_on.set()
    assert until(lambda: b"first" in alices.shown())
    voice.stop(10)


def test_root_is_not_told(screen):
    roots = screen(0)
    voice = Terminals()
    voice.start()
    voice.say(0, ["hear"])
    voice.stop(10)
    assert roots.shown() == b""
