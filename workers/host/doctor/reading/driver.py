"""NVIDIA's driver: its parameters, the nodes that lead to a GPU, and what draws on one."""

import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from workers.host.doctor.facts import Capability, Driver, Node
from workers.host.doctor.reading.files import Roots, text
from workers.host.fields import numbers

LIBRARY = "libnvidia-ml.so.1"
_DISPLAY_SERVERS = frozenset({"Xorg", "Xwayland", "gnome-shell", "kwin_wayland", "weston", "sway"})
# A process' name in /proc has 15 characters at most.
_PERSISTENCE_DAEMON = "nvidia-persistenced"[:15]
_PCI_VENDOR = "0x10de"


def read(roots: Roots, load: Callable[[str], object]) -> Driver:
    parameters = text(roots.proc / "driver/nvidia/params")
    try:
        load(LIBRARY)
        library_error = ""
    except OSError as error:
        library_error = str(error)
    return Driver(
        parameters=None if parameters is None else numbers(parameters),
        nodes=tuple(_gpu_nodes(roots.dev)),
        control=_node(roots.dev / "nvidiactl", roots.dev),
        capabilities=tuple(_capabilities(roots)),
        render_nodes=tuple(_render_nodes(roots)),
        persistence_daemon=any(name == _PERSISTENCE_DAEMON for _, name in _names(roots.proc)),
        connectors=_connectors(roots.sys / "class/drm"),
        display_servers=_display_servers(roots.proc),
        library_error=library_error,
    )


def _gpu_nodes(dev: Path) -> Iterator[Node]:
    found = [path for path in dev.glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)]
    for path in sorted(found, key=lambda path: int(path.name[6:])):
        if node := _node(path, dev):
            yield node


def _node(path: Path, dev: Path) -> Node | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return Node(
        path=f"/dev/{path.relative_to(dev)}",
        mode=stat.S_IMODE(found.st_mode),
        uid=found.st_uid,
        gid=found.st_gid,
    )


def _capabilities(roots: Roots) -> Iterator[Capability]:
    """Of each MIG instance: .../gpu0/mig/gi1/access, and .../gi1/ci0/access of its compute part."""
    folder = roots.proc / "driver/nvidia/capabilities"
    for path in sorted(folder.glob("gpu*/mig/gi*/**/access")):
        found = numbers(text(path) or "")
        if "DeviceFileMinor" in found:
            number = found["DeviceFileMinor"]
            yield Capability(
                path=f"/proc/{path.relative_to(roots.proc)}",
                node=_node(roots.dev / f"nvidia-caps/nvidia-cap{number}", roots.dev),
                mode=found.get("DeviceFileMode", 0o444),
                kept=bool(found.get("DeviceFileModify", 1)),
            )


def _render_nodes(roots: Roots) -> Iterator[Node]:
    for folder in sorted((roots.sys / "class/drm").glob("renderD*")):
        node = _node(roots.dev / "dri" / folder.name, roots.dev)
        if node and _is_nvidia(folder):
            yield node


def _connectors(folder: Path) -> tuple[str, ...]:
    """Sockets of NVIDIA cards into which a display is plugged, such as card0-HDMI-A-1."""
    return tuple(
        sorted(
            path.parent.name
            for path in folder.glob("card*-*/status")
            if (text(path) or "").strip() == "connected"
            and _is_nvidia(folder / path.parent.name.split("-", 1)[0])
        )
    )


def _is_nvidia(card: Path) -> bool:
    return (text(card / "device/vendor") or "").strip() == _PCI_VENDOR


def _display_servers(proc: Path) -> tuple[str, ...]:
    """By name, which is good enough for advice; the agent never decides by name."""
    return tuple(
        sorted(
            f"{name} (pid {process.name})"
            for process, name in _names(proc)
            if name in _DISPLAY_SERVERS and _holds(process)
        )
    )


def _names(proc: Path) -> Iterator[tuple[Path, str]]:
    for path in proc.glob("[0-9]*/comm"):
        yield path.parent, (text(path) or "").strip()


def _holds(process: Path) -> bool:
    try:
        return any(
            os.readlink(descriptor).startswith("/dev/nvidia")
            for descriptor in (process / "fd").iterdir()
        )
    except OSError:
        return False
