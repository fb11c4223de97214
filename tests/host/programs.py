"""Programs that stand on PATH for docker, podman and systemctl, and say what a test wants."""

import os
import shlex
from pathlib import Path

import pytest


class FakePrograms:
    """A folder that comes first on PATH. Each program notes its arguments in ``asked(name)``."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        folder.mkdir()
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def add(self, name: str, body: str) -> None:
        """``body`` is a shell script."""
        path = self._folder / name
        note = f'echo "$@" >> {shlex.quote(str(self._folder / name))}.asked\n'
        path.write_text(f"#!/bin/sh\n{note}{body}\n")
        path.chmod(0o755)

    def answers(self, name: str, text: str) -> None:
        said = self._folder / f"{name}.says"
        said.write_text(text)
        self.add(name, f"cat {shlex.quote(str(said))}")

    def refuses(self, name: str, text: str) -> None:
        self.add(name, f"echo {shlex.quote(text)} >&2; exit 1")

    def hangs(self, name: str) -> None:
        """With a child that keeps its output open, as wrappers do."""
        self.add(name, f"echo $$ > {shlex.quote(str(self.pid_file(name)))}\nsleep 600 | cat")

    def pid_file(self, name: str) -> Path:
        return self._folder / f"{name}.pid"

    def asked(self, name: str) -> list[str]:
        """The arguments of each call."""
        path = self._folder / f"{name}.asked"
        return path.read_text().splitlines() if path.exists() else []

    def only(self) -> None:
        """Nothing else is installed."""
        self._monkeypatch.setenv("PATH", str(self._folder))
