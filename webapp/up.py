"""`make up`: the whole of Berth on one machine, in the foreground, with demo data.

Redis, web, control worker, beat, and two simulated hosts whose workers really run agents over
simulated devices. Everything it writes lies under ``$BERTH_DATA`` (default ``var/``). Running it twice
is harmless; Ctrl-C stops all of it.
"""

import contextlib
import fcntl
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from webapp import embedded
from webapp.supervise import Part, PartFailed, Supervisor

ROOT = Path(__file__).resolve().parent.parent
READY_LIMIT_S = 90.0
SIMULATED_HOSTS = {
    "sim-a": {"model": "A100 80GB", "memory_gib": 80},
    "sim-b": {"model": "RTX 4090 24GB", "memory_gib": 24},
}
DEVICES_PER_HOST = 4
PEOPLE = "alice,bob,carol"


class CannotStart(RuntimeError):
    """One sentence that says what is in the way and what to do."""


class Stopped(Exception):
    """Ctrl-C or SIGTERM."""


def main() -> int:
    data = Path(os.environ.get("BERTH_DATA", ROOT / "var")).absolute()
    signal.signal(signal.SIGTERM, _raise_stopped)
    signal.signal(signal.SIGINT, _raise_stopped)
    try:
        data.mkdir(parents=True, exist_ok=True)
        with _only_one(data):
            return _run(data)
    except OSError as error:
        print(
            f"\nBerth did not start. {error.filename or data}: {error.strerror}. Everything is kept "
            f"under {data}; choose another folder: BERTH_DATA=/some/folder make up",
            file=sys.stderr,
        )
        return 1
    except (CannotStart, PartFailed, embedded.RedisMissing) as error:
        print(f"\nBerth did not start. {error}", file=sys.stderr)
        return 1


def _raise_stopped(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped


@contextlib.contextmanager
def _only_one(data: Path) -> Iterator[None]:
    """Hold the lock of this data folder, or say that it already runs and leave with status 0."""
    with (data / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            print(f"Berth already runs here: {lock.read().strip()}. Ctrl-C in its window stops it.")
            raise SystemExit(0) from None
        lock.truncate(0)
        lock.write(f"http://127.0.0.1:{_port()} (pid {os.getpid()})")
        lock.flush()
        yield


def _port() -> int:
    text = os.environ.get("PORT", "8000")
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise CannotStart(f"PORT={text!r} is not a port. Try: make up PORT=8001")
    return int(text)


def _run(data: Path) -> int:
    port = _port()
    _require_free(port)
    environment = _environment(data, port)
    os.environ.update(environment)
    supervisor = Supervisor(run_dir=data / "run", log_dir=data / "log", say=_say)
    began = time.monotonic()
    try:
        if redis := _redis_part(data, environment["REDIS_URL"]):
            supervisor.start(redis)
        _prepare(data)
        for part in [*_site_parts(port), *_host_parts(data, port)]:
            supervisor.start(part)
        _wait_until(lambda: _is_ready(port), supervisor)
        _manage("demo", "--bookings")
        _print_welcome(data, port, time.monotonic() - began)
        while True:
            time.sleep(1)  # noqa: TID251 -- the supervisor's own loop
            supervisor.restart_dead()
    except Stopped:
        _say("stopping …")
        return 0
    finally:
        _quiet("workers.host.simjob", "stop", "--all")
        supervisor.stop()


def _environment(data: Path, port: int) -> dict[str, str]:
    """What every part gets; also written to ``env``, where manage.py finds it."""
    path = data / "env"
    known = dict(line.split("=", 1) for line in _lines(path) if "=" in line)
    environment = {
        "BERTH_DATA": str(data),
        "SECRET_KEY": os.environ.get("SECRET_KEY")
        or known.get("SECRET_KEY")
        or secrets.token_hex(32),
        "BERTH_URL": os.environ.get("BERTH_URL", f"http://127.0.0.1:{port}"),
        "REDIS_URL": os.environ.get("REDIS_URL") or _embedded_url(known.get("REDIS_URL", "")),
    }
    if url := os.environ.get("DATABASE_URL"):
        environment["DATABASE_URL"] = url
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(f"{name}={value}\n" for name, value in environment.items())
    return environment


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def _embedded_url(last: str) -> str:
    """Last time's address if its port is free again, else a new one."""
    port = last.rpartition(":")[2].partition("/")[0]
    if port.isdigit() and _is_free(int(port)):
        return last
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"redis://127.0.0.1:{probe.getsockname()[1]}/0"


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def _require_free(port: int) -> None:
    if not _is_free(port):
        raise CannotStart(
            f"Port {port} is used by another program. Choose another: make up PORT={port + 1}"
        )


def _redis_part(data: Path, url: str) -> Part | None:
    """Our own Redis, unless the environment names one."""
    if _AT_START.get("REDIS_URL"):
        return None
    port = url.rpartition(":")[2].partition("/")[0]
    folder = data / "redis"
    folder.mkdir(exist_ok=True)
    options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    return Part("redis", [*embedded.redis_command(), *options])


def _prepare(data: Path) -> None:
    """Bring database, static files, simulated hosts and demo people to where they should be."""
    for name, shape in SIMULATED_HOSTS.items():
        _python(
            "workers.host.simjob", "prepare", "--host", name, "--devices", str(DEVICES_PER_HOST),
            "--model", str(shape["model"]), "--memory-gib", str(shape["memory_gib"]), "--users", PEOPLE,
        )  # fmt: skip
    _manage("migrate", "--verbosity", "0")
    _manage("collectstatic", "--noinput", "--verbosity", "0")
    _manage("demo")


def _site_parts(port: int) -> list[Part]:
    python = sys.executable
    celery = [python, "-m", "celery", "-A", "webapp.celery"]
    web = [
        python, "-m", "uvicorn", "webapp.asgi:application", "--host", "127.0.0.1", "--port", str(port),
        "--ws-per-message-deflate", "false", "--no-access-log", "--timeout-graceful-shutdown", "3",
    ]  # fmt: skip
    worker = ["worker", "-Q", "control", "-P", "threads", "-c", "4", "-l", "INFO",
              "--without-gossip", "--without-mingle"]  # fmt: skip
    return [
        Part("web", web),
        Part("control", [*celery, *worker]),
        Part("beat", [*celery, "beat", "-l", "INFO", "--pidfile="]),
    ]


def _host_parts(data: Path, port: int) -> list[Part]:
    return [
        Part(
            f"host-{name}",
            [sys.executable, "-m", "workers.host", "run"],
            _host_environment(data / "sim" / name, name, port),
        )
        for name in SIMULATED_HOSTS
    ]


def _host_environment(folder: Path, name: str, port: int) -> dict[str, str]:
    """What the host's worker gets; also in its ``host.env``, for `berth-host` in another shell."""
    environment = {
        "BERTH_HOST_NAME": name,
        "BERTH_URL": f"http://127.0.0.1:{port}",
        "BERTH_HOST_TOKEN_FILE": str(folder / "token"),
        "BERTH_STATE_DIR": str(folder),
        "BERTH_RUN_DIR": str(folder / "run"),
        "BERTH_VENDOR": "simulated",
        "BERTH_GATE": "record",
    }
    lines = [f"{variable}={value}\n" for variable, value in environment.items()]
    (folder / "host.env").write_text("".join(lines))
    return environment


def _wait_until(ready: Any, supervisor: Supervisor) -> None:
    deadline = time.monotonic() + READY_LIMIT_S
    while time.monotonic() < deadline:
        supervisor.require_alive()
        if ready():
            return
        time.sleep(0.3)  # noqa: TID251 -- the supervisor's own loop
    raise CannotStart(
        f"After {READY_LIMIT_S:.0f} s not everything answers: {json.dumps(_health(_port()))}. "
        f"The logs are in {supervisor.log_dir}"
    )


def _health(port: int) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=3)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return {**json.loads(answer.read()), "http": answer.status}
    except (OSError, ValueError, http.client.HTTPException) as error:
        return {"http": 0, "error": str(error)}
    finally:
        connection.close()


def _is_ready(port: int) -> bool:
    health = _health(port)
    return health["http"] == 200 and not health["silent_hosts"]


def _manage(*arguments: str) -> None:
    _check([sys.executable, "manage.py", *arguments])


def _python(module: str, *arguments: str) -> None:
    _check([sys.executable, "-m", module, *arguments])


def _check(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        tail = "\n".join(f"  | {line}" for line in (done.stdout + done.stderr).splitlines()[-12:])
        raise CannotStart(f"`{' '.join(command[1:4])}` failed:\n{tail}")


def _quiet(module: str, *arguments: str) -> None:
    command = [sys.executable, "-m", module, *arguments]
    subprocess.run(command, cwd=ROOT, capture_output=True, check=False)  # noqa: S603


def _say(text: str) -> None:
    print(f"berth: {text}", flush=True)


def _print_welcome(data: Path, port: int, seconds: float) -> None:
    usual = data == ROOT / "var"
    shown = Path("var") if usual else data
    manage = f"{'' if usual else f'BERTH_DATA={data} '}.venv/bin/python manage.py"
    print(
        f"""
Berth runs at http://127.0.0.1:{port}   (ready after {seconds:.0f} s; logs in {shown / "log"})

  sign in as   alice, bob, carol (people) or admin (operator); the password is the name
  try this     drag on a row of sim-a to book it; open /live/ in a second window
               {manage} simjob start --user bob --host sim-a --index 0 --profile train
               {manage} token alice --scopes book
               env $(cat {shown / "sim" / "sim-a" / "host.env"}) bin/berth-host status

Ctrl-C stops everything.
""",
        flush=True,
    )


# As it was before `_environment` filled it in.
_AT_START = dict(os.environ)

if __name__ == "__main__":
    sys.exit(main())
