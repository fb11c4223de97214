"""Files that must survive a crash: whole or not at all, readable by root only."""

import contextlib
import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Writes the file so that a crash at any moment leaves the old or the new one, mode 0600."""
    temporary = path.with_name(f"{path.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def set_aside(path: Path) -> Path:
    """Moves a file that cannot be used out of the way, for somebody to look at; the last one is kept."""
    aside = path.with_name(f"{path.name}.corrupt")
    with contextlib.suppress(FileNotFoundError):
        path.replace(aside)
    return aside
