"""`make up` says in one sentence what is in its way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def up(**environment):
    return subprocess.run(
        [sys.executable, "-m", "webapp.up"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("below", ["", "var"])
def test_a_data_folder_that_cannot_be_written_is_named(tmp_path, below):
    file = tmp_path / "file"
    file.touch()
    done = up(BERTH_DATA=str(file / below) if below else str(file))
    assert done.returncode == 1
    assert done.stderr.startswith(f"\nBerth did not start. {file}")
    assert "BERTH_DATA=" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("port", ["abc", "0", "65536", "", "²"])
def test_a_port_that_is_none_is_said(tmp_path, port):
    done = up(BERTH_DATA=str(tmp_path), PORT=port)
    assert done.returncode == 1
    assert f"PORT={port!r} is not a port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["simjob", "token", "check"])
def test_a_command_in_the_wrong_folder_says_which_and_how_to_name_another(tmp_path, command):
    unset = {"SECRET_KEY", "SECRET_KEY_FILE", "DJANGO_SETTINGS_MODULE"}
    known = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "manage.py", command, "start"],
        cwd=ROOT,
        env={**known, "BERTH_DATA": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"manage.py: SECRET_KEY is not set, also not in {tmp_path}/env.")
    assert "BERTH_DATA=" in done.stderr
    assert len(done.stderr.splitlines()) == 1
