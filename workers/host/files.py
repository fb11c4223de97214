"""Files that must survive a crash: whole or not at all, readable by root only."""

import contextlib
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import IO, TypeVar

import msgspec

T = TypeVar("T")


class Damaged(ValueError):
    """The file is there and does not add up."""


def write_checked(path: Path, content: object) -> None:
    """One line of checksum and one of JSON, replaced whole."""
    body = msgspec.json.encode(content)
    replace_file(path, sha256(body).hexdigest().encode() + b"\n" + body + b"\n")


def read_checked(path: Path, shape: type[T]) -> T | None:
    """What `write_checked` wrote, or None where there is no such file.

    Raises:
        Damaged: it cannot be read, was changed, or is of another shape.
    """
    try:
        checksum, _, body = path.read_bytes().partition(b"\n")
        body = body.removesuffix(b"\n")
        if sha256(body).hexdigest().encode() != checksum:
            raise Damaged(f"{path.name}: the checksum does not match")
        return msgspec.json.decode(body, type=shape)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, msgspec.DecodeError) as error:
        raise Damaged(f"{path.name}: {error}") from error


def replace_file(path: Path, content: bytes) -> None:
    """Writes the file so that a crash at any moment leaves the old or the new one, mode 0600."""
    with _replacing(path) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def replace_unsynced(path: Path, content: bytes) -> None:
    """The same for what is worth nothing, or known again, after a power cut: no wait for the disk."""
    with _replacing(path) as file:
        file.write(content)


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file beside it, which takes its place once the block has written it."""
    temporary = path.with_name(f"{path.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
    temporary.replace(path)


def others_may_write(folder: os.stat_result) -> bool:
    """Our own group is not others: with a group for each person, umasks let it write."""
    group_may = folder.st_mode & 0o020 and folder.st_gid != os.getegid()
    return folder.st_uid != os.geteuid() or bool(group_may or folder.st_mode & 0o002)


def open_lock(path: Path) -> IO[bytes]:
    """A file to hold a lock on, that only its owner may open: whoever can read a file can lock it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if os.fstat(descriptor).st_uid == os.geteuid():
        os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "wb")


def set_aside(path: Path) -> Path:
    """Moves a file that cannot be used out of the way, for somebody to look at; the last one is kept."""
    aside = path.with_name(f"{path.name}.corrupt")
    with contextlib.suppress(FileNotFoundError):
        path.replace(aside)
    return aside
