"""`berth-host top` and `smi` as an ordinary person runs them: no root, no configuration, no network."""

import contextlib
import io
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from tests.host.control_plane import grant
from tests.host.kit import ROOT
from tests.host.people import as_person, let_everybody_into
from tests.host.public_host import closed, device, host
from tests.waiting import until
from workers.host.cli import main
from workers.host.public import PublicFile

pytestmark = pytest.mark.root
SOMEBODY = 61001
OLD_S = 40


@pytest.fixture
def folder(tmp_path):
    let_everybody_into(tmp_path)
    PublicFile(tmp_path / "run").write(host(device(0), closed(1)))
    return tmp_path / "run"


def environment(folder):
    return {"PATH": os.environ["PATH"], "BERTH_RUN_DIR": str(folder), "PYTHONPATH": str(ROOT)}


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def ran(folder, *arguments):
    """The command in a child that is somebody; a fork, as not everybody may run this Python."""

    def command():
        out, err = io.StringIO(), io.StringIO()
        os.environ["BERTH_RUN_DIR"] = str(folder)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(list(arguments))
        return status, out.getvalue(), err.getvalue()

    return Done(*as_person(SOMEBODY, command))


def make_old(folder):
    past = time.time() - OLD_S
    os.utime(folder / "devices.json", (past, past))


def test_top_prints_once_where_nobody_watches(folder):
    done = ran(folder, "top")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "gpu-01  mode enforce  https://berth.example"
    assert "A100-SXM4-80GB" in lines[3]
    assert all(len(line) <= 80 for line in lines)


def test_smi_answers_like_nvidia_smi(folder):
    done = ran(folder, "smi", "--format=csv,noheader,nounits", "--query-gpu=index,memory.used")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0, 30720\n1, [N/A]\n", "")


def test_smi_answers_something_useful_without_a_question(folder):
    done = ran(folder, "smi", "--format=csv")
    assert done.stdout.startswith("index, name, utilization.gpu [%], memory.used [MiB]")


def test_smi_lists_processes(folder):
    done = ran(folder, "smi", "--format=csv,noheader", "--query-compute-apps=pid,used_memory")
    assert done.stdout == "4711, 29696 MiB\n"


def test_a_wrong_field_is_a_wrong_call(folder):
    done = ran(folder, "smi", "--format=csv", "--query-gpu=index,nonsense")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'field "nonsense" is not known here' in done.stderr


def test_old_data_is_shown_as_old_and_not_given_to_scripts(folder):
    make_old(folder)
    top, smi = ran(folder, "top", "--once"), ran(folder, "smi", "--format=csv")
    assert top.returncode == smi.returncode == 1
    assert "s old: the agent does not run" in top.stdout
    assert smi.stdout == ""
    assert "s old: the agent does not run" in smi.stderr


def test_without_a_file_both_say_what_is_missing(folder):
    (folder / "devices.json").unlink()
    for arguments in (["top"], ["smi", "--format=csv"]):
        done = ran(folder, *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert "devices.json is not there: has the agent of this host run yet?" in done.stderr


class Watching:
    """`top` on a terminal of its own."""

    def __init__(self, folder):
        self.inner, outer = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "workers.host", "top"],
            cwd="/",
            env=environment(folder),
            stdin=outer,
            stdout=outer,
            stderr=outer,
            # Ctrl-C goes to whoever has the terminal.
            start_new_session=True,
            preexec_fn=lambda: _take_terminal(outer),
        )
        os.close(outer)
        self.shown = b""

    def until_shown(self, words):
        deadline = time.monotonic() + 20
        while words not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0, self.shown
            if select.select([self.inner], [], [], left)[0]:
                self.shown += os.read(self.inner, 65536)

    def press(self, keys):
        os.write(self.inner, keys)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        os.close(self.inner)


def _take_terminal(terminal):
    import fcntl
    import termios

    # Whoever runs the tests in the background of a shell has it ignored, and children inherit that.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)


@pytest.fixture
def watching(folder):
    made = Watching(folder)
    yield made
    made.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("keys", [b"q", b"\x03"])
def test_top_goes_on_until_it_is_told_to_stop_and_gives_the_screen_back(folder, watching, keys):
    watching.until_shown(b"A100-SXM4-80GB")
    PublicFile(folder).write(host(device(0, model="Another card")))
    watching.until_shown(b"Another card")
    make_old(folder)
    watching.until_shown(b"the agent does not run")
    (folder / "devices.json").unlink()
    watching.until_shown(b"is not there")
    watching.press(keys)
    watching.until_shown(b"\x1b[?1049l")
    assert watching.process.wait(10) == 0


def test_what_a_real_worker_publishes_is_what_top_and_smi_show(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    job = sim.job("alice")
    sim.worker(plane.url)
    let_everybody_into(sim.state_dir)

    def line():
        done = ran(
            sim.state_dir / "run",
            "smi",
            "--format=csv,noheader",
            "--query-gpu=berth.booked_by,berth.held_by",
        )
        return done.stdout.splitlines()[:1]

    until(lambda: line() == ["alice, alice"])
    assert f"{job:7}" in ran(sim.state_dir / "run", "top", "--once").stdout
