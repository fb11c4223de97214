"""Keeps the parts of a site running on one machine: starts, watches, restarts, stops them.

Each part is a child in its own session, so that Ctrl-C reaches only the supervisor, which then stops
the parts in order. Its output goes to a log file; its pid stands in a file while it lives.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_STOP_LIMIT_S = 10.0
_SHORTEST_LIFE_S = 5.0


class PartFailed(RuntimeError):
    """A part ended while starting; the text holds its last lines."""


@dataclass
class Part:
    """One process of the site. ``environment`` is laid over the supervisor's own."""

    name: str
    command: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    process: "subprocess.Popen[bytes] | None" = None
    started: float = 0.0


def _die_with_parent() -> None:
    """In the child: a supervisor that was killed -9 leaves nothing running."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Supervisor:
    def __init__(self, *, run_dir: Path, log_dir: Path, say: Callable[[str], None]) -> None:
        self.run_dir = run_dir
        self.log_dir = log_dir
        self.say = say
        self.parts: list[Part] = []
        for folder in (run_dir, log_dir):
            folder.mkdir(parents=True, exist_ok=True)

    def start(self, part: Part) -> None:
        self._spawn(part)
        self.parts.append(part)

    def _spawn(self, part: Part) -> None:
        with self._log_path(part).open("ab") as log:
            part.process = subprocess.Popen(  # noqa: S603 -- commands are ours
                part.command,
                env={**os.environ, **part.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,
            )
        part.started = time.monotonic()
        self._pid_path(part).write_text(f"{part.process.pid}\n")

    def require_alive(self) -> None:
        """Raises PartFailed if a part has ended."""
        for part in self.parts:
            if part.process is not None and part.process.poll() is not None:
                raise PartFailed(
                    f"{part.name} ended with status {part.process.returncode}. Its last lines "
                    f"({self._log_path(part)}):\n{self.last_lines(part)}"
                )

    def restart_dead(self) -> None:
        """Start again what has ended; one that dies at once is left a moment first."""
        for part in self.parts:
            if part.process is None or part.process.poll() is None:
                continue
            if time.monotonic() - part.started < _SHORTEST_LIFE_S:
                continue
            self.say(f"{part.name} ended with status {part.process.returncode}; starting it again")
            try:
                self._spawn(part)
            except OSError as error:
                # A full disk passes; the other parts go on meanwhile.
                part.started = time.monotonic()
                self.say(f"{part.name} did not start: {error}")

    def stop(self) -> None:
        """Ask every part to end, last started first; after the limit, kill."""
        alive = [part for part in reversed(self.parts) if _is_alive(part)]
        _signal(alive, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_LIMIT_S
        for part in alive:
            if part.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    part.process.wait(max(0.1, deadline - time.monotonic()))
        _signal([part for part in alive if _is_alive(part)], signal.SIGKILL)
        for part in self.parts:
            self._pid_path(part).unlink(missing_ok=True)

    def last_lines(self, part: Part, *, count: int = 12) -> str:
        lines = self._log_path(part).read_text(errors="replace").splitlines()
        return "\n".join(f"  | {line}" for line in lines[-count:])

    def _log_path(self, part: Part) -> Path:
        return self.log_dir / f"{part.name}.log"

    def _pid_path(self, part: Part) -> Path:
        return self.run_dir / f"{part.name}.pid"


def _is_alive(part: Part) -> bool:
    return part.process is not None and part.process.poll() is None


def _signal(parts: Iterable[Part], number: int) -> None:
    for part in parts:
        if part.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(part.process.pid, number)
