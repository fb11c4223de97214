"""Which lines of modprobe.d were written for Berth, and are to be removed when it goes."""

from collections.abc import Iterator
from pathlib import Path

FOLDER = Path("/etc/modprobe.d")


def advice(folder: Path = FOLDER) -> list[str]:
    """What is left to do by hand; nothing where there is no such line."""
    found = list(_lines(folder))
    if not found:
        return []
    return [
        "The driver still makes its nodes for the access group alone. Remove these lines,",
        "then reload the driver or reboot:",
        *(f"  {path}: {line}" for path, line in found),
    ]


def _lines(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in sorted(folder.glob("*.conf")):
        try:
            content = path.read_text(errors="replace")
        except OSError:
            continue
        for line in content.splitlines():
            words = line.split()
            if words[:2] == ["options", "nvidia"] and "NVreg_DeviceFile" in line:
                yield path, line.strip()
