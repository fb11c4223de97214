"""Text files below a root; whatever cannot be read is None."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the parts of a machine are. ``top`` is for paths that a file of the machine names."""

    top: Path = Path("/")
    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    etc: Path = Path("/etc")
    var: Path = Path("/var")


THIS_MACHINE = Roots()


def text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip("\n")
    except OSError:
        return None
