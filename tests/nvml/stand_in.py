"""Compiles the stand-in of libnvidia-ml and writes what it is to say. The format: stand_in.h."""

import subprocess
from pathlib import Path

FOLDER = Path(__file__).parent
LIBRARY = "libnvidia-ml.so.1"
NEWEST = 570
GIB = 2**30

# Codes of nvmlReturn_t that tests speak of.
NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND = 3, 4, 6
DRIVER_NOT_LOADED, TIMEOUT, FUNCTION_NOT_FOUND = 9, 10, 13
GPU_IS_LOST, RESET_REQUIRED, VERSION_MISMATCH, UNKNOWN = 15, 16, 18, 999


def compile_into(folder: Path, *, driver: int = NEWEST) -> Path:
    """The library's path. An older ``driver`` lacks the calls that came later."""
    folder.mkdir(exist_ok=True)
    library = folder / LIBRARY
    subprocess.run(
        [
            "cc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-D_GNU_SOURCE",
            f"-DDRIVER={driver}", f"-Wl,-soname,{LIBRARY}", "-o", library,
            *sorted(FOLDER.glob("*.c")), "-lpthread",
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
        "total": 80 * GIB,
        "used": 0,
        "reserved": GIB // 2,
        "util": 0,
        "temp": 41,
        "power": 62_000,
        "limit": 400_000,
        "clock": 210,
        "throttle": 1,
        "ecc": 0,
        "display": 0,
    }
    return f"gpu {uuid} {_words({**figures, **keys})}"


def mig(slot: int, uuid: str, **keys: object) -> str:
    """The line of a part of the GPU before it: a seventh with one compute instance."""
    figures = {"name": "A100_MIG_1g.10gb", "total": 10 * GIB, "used": 0, "gi": slot + 1, "ci": 0}
    return f"mig {slot} {uuid} {_words({**figures, **keys})}"


def write(path: Path, *lines: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text("\n".join(lines) + "\n")
    temporary.replace(path)


def event(path: Path, uuid: str, xid: int) -> None:
    """Has the driver tell of an Xid; ``path`` is that of the state."""
    with Path(f"{path}.events").open("a") as events:
        events.write(f"{uuid} 8 {xid}\n")


def _words(keys: dict[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in keys.items() if value is not None)
