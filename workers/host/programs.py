"""Asks another program of this machine, found on PATH, within a time limit and never through a shell."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence

# What a program may need to find its engine; the worker's token is none of its business.
_PASSED_ON = ("PATH", "HOME", "DOCKER_HOST", "CONTAINER_HOST")
# What a killed program's pipe may take to close: one in state D never does.
_CLOSING_S = 1.0


class ProgramMissingError(RuntimeError):
    """There is no program of that name on PATH."""


class ProgramSilentError(RuntimeError):
    """It gave no answer within its time."""


def ask_program(argv: Sequence[str], *, limit_s: float) -> tuple[int, bytes, bytes]:
    """Its exit status, standard output and standard error. Killed with all its children at the limit.

    Raises:
        ProgramMissingError: it is not there, or cannot be started.
        ProgramSilentError: it took longer.
    """
    path = shutil.which(argv[0])
    if path is None:
        raise ProgramMissingError(f"{argv[0]} is not installed")
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    try:
        started = subprocess.Popen(  # noqa: S603 -- a fixed name from PATH, arguments as a list
            [path, *argv[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**environment, "LC_ALL": "C"},
            # A group of its own: what it has started holds the pipes open as well.
            start_new_session=True,
        )
    except OSError as error:
        raise ProgramMissingError(f"{argv[0]} cannot be started: {error}") from error
    try:
        out, err = started.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        _end(started)
        raise ProgramSilentError(f"{argv[0]} gave no answer within {limit_s:g} s") from None
    return started.returncode, out, err


def _end(started: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        started.communicate(timeout=_CLOSING_S)
    for pipe in (started.stdout, started.stderr):
        if pipe:
            pipe.close()
