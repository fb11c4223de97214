"""Compiles the stand-in of libnvidia-ml and writes what it is to say."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("nvml.c")
LIBRARY = "libnvidia-ml.so.1"


def compile_into(folder: Path, *, old_driver: bool = False) -> Path:
    """The library's path. As an old driver it lacks the calls that came with 510 and later."""
    folder.mkdir(exist_ok=True)
    library = folder / LIBRARY
    define = ["-DOLD_DRIVER"] if old_driver else []
    subprocess.run(
        [
            "cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-D_GNU_SOURCE",
            f"-Wl,-soname,{LIBRARY}", *define, "-o", library, SOURCE,
        ],
        check=True,
    )  # fmt: skip
    return library


def gpu(uuid: str, **keys: object) -> str:
    """The line of a device: an idle A100 unless told otherwise; None leaves a figure out."""
    figures = {
        "minor": 0,
        "name": "A100",
        "bus": "00000000:07:00.0",
        "total": 80 * 2**30,
        "used": 0,
        "reserved": 2**29,
        "util": 0,
        "temp": 41,
        "power": 62_000,
        "limit": 400_000,
        "clock": 210,
        "throttle": 1,
        "ecc": 0,
    }
    given = {name: value for name, value in {**figures, **keys}.items() if value is not None}
    return f"gpu {uuid} " + " ".join(f"{name}={value}" for name, value in given.items())


def write(path: Path, *lines: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(path)
