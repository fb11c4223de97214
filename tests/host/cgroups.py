"""Real cgroups for tests as root."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until


def _root() -> Path | None:
    for line in Path("/proc/mounts").read_text().splitlines():
        kind, place = line.split()[2], line.split()[1]
        if kind == "cgroup2":
            return Path(place)
    return None


@contextlib.contextmanager
def cgroup(path: str) -> Iterator[Path]:
    """A group of that path in the tree of version 2; its processes must end inside of the block."""
    root = _root()
    if root is None:
        pytest.skip("needs a cgroup2 mount")
    folder = root / path.lstrip("/")
    made = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"cannot make cgroups: {error}")
    try:
        yield folder
    finally:
        for one in made:
            until(lambda one=one: _removed(one))  # type: ignore[misc]


def _removed(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True


def move(pid: int, folder: Path) -> None:
    (folder / "cgroup.procs").write_text(str(pid))
