"""Collects the facts of a host. Changes nothing, but for a file in /dev that it makes and removes.

Each root is an argument, so that a folder can stand for a whole machine.
"""

import ctypes
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from workers.host import clock, config
from workers.host.clock import HostClock
from workers.host.doctor.facts import (
    CgroupMode,
    Driver,
    Facts,
    Group,
    Machine,
    Node,
    People,
    SecretFile,
    Setup,
)
from workers.host.gates import acl
from workers.host.plan_store import StoredPlan

LIBRARY = "libnvidia-ml.so.1"
ENVIRONMENT_FILE = "berth/host.env"
_DISPLAY_SERVERS = frozenset({"Xorg", "Xwayland", "gnome-shell", "kwin_wayland", "weston", "sway"})
_NVIDIA_PCI_VENDOR = "0x10de"
_SLURM_GPUS = re.compile(
    r"^\s*(?:NodeName=\S+\s+)?(?:Name=gpu\b|AutoDetect=nv)", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Roots:
    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    dev: Path = Path("/dev")
    etc: Path = Path("/etc")
    var: Path = Path("/var")


def read(
    environ: Mapping[str, str],
    *,
    roots: Roots = Roots(),
    load: Callable[[str], object] = ctypes.CDLL,
    wall: Callable[[], datetime] = clock.wall,
) -> Facts:
    """Everything. ``environ`` wins over the service's own /etc/berth/host.env."""
    environ = {**_environment_file(roots.etc / ENVIRONMENT_FILE), **environ}
    return Facts(
        machine=_machine(roots),
        driver=_driver(roots, load),
        people=_people(roots.etc),
        setup=_setup(environ, roots, wall),
    )


def _machine(roots: Roots) -> Machine:
    status = _fields(_text(roots.proc / "self/status") or "")
    capabilities = status.get("CapEff")
    uids = status.get("Uid", "").split()
    try:
        namespace = os.readlink(roots.proc / "self/ns/pid")
    except OSError:
        namespace = None
    return Machine(
        kernel=_text(roots.proc / "sys/kernel/osrelease"),
        python=(sys.version_info.major, sys.version_info.minor),
        pid_namespace=namespace,
        euid=int(uids[1]) if len(uids) > 1 else None,
        capabilities=int(capabilities, 16) if capabilities else None,
        acl_errno=_acl_errno(roots.dev),
        cgroups=_cgroups(roots.sys / "fs/cgroup"),
        hidepid=_hidepid(_text(roots.proc / "self/mounts")),
    )


def _acl_errno(dev: Path) -> int:
    """0 if this file system takes an ACL: what it does to a file it does to a node."""
    try:
        with tempfile.NamedTemporaryFile(dir=dev, prefix=".berth-doctor-") as file:
            content = acl.encode(acl.entries_for([65534], group_open=False))
            os.setxattr(file.name, acl.ATTRIBUTE, content)
    except OSError as error:
        return error.errno or -1
    return 0


def _cgroups(folder: Path) -> CgroupMode:
    if (folder / "cgroup.controllers").exists():
        return "v2"
    if (folder / "unified/cgroup.controllers").exists():
        return "hybrid"
    return "v1" if (folder / "devices").exists() else "none"


def _hidepid(mounts: str | None) -> str | None:
    """The option's value, "" where /proc is mounted without it."""
    if mounts is None:
        return None
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) > 3 and fields[1] == "/proc":
            found = re.search(r"\bhidepid=(\w+)", fields[3])
            return found.group(1) if found else ""
    return ""


def _driver(roots: Roots, load: Callable[[str], object]) -> Driver:
    parameters = _text(roots.proc / "driver/nvidia/params")
    try:
        load(LIBRARY)
        library_error = ""
    except OSError as error:
        library_error = str(error)
    nodes = [path for path in roots.dev.glob("nvidia*") if re.fullmatch(r"nvidia\d+", path.name)]
    return Driver(
        parameters=None if parameters is None else _parameters(parameters),
        nodes=tuple(
            node
            for path in sorted(nodes, key=lambda path: int(path.name[6:]))
            if (node := _node(path, roots.dev))
        ),
        control=_node(roots.dev / "nvidiactl", roots.dev),
        connectors=_connectors(roots.sys / "class/drm"),
        display_servers=_display_servers(roots.proc),
        library_error=library_error,
    )


def _parameters(content: str) -> dict[str, int]:
    """The driver prints decimal numbers, as unsigned ones."""
    return {name: int(value) for name, value in _fields(content).items() if value.isdecimal()}


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


def _connectors(folder: Path) -> tuple[str, ...]:
    """Sockets of NVIDIA cards into which a display is plugged, such as card0-HDMI-A-1."""
    return tuple(
        sorted(
            path.parent.name
            for path in folder.glob("card*-*/status")
            if (_text(path) or "").strip() == "connected" and _is_nvidia(path.parent)
        )
    )


def _is_nvidia(connector: Path) -> bool:
    card = connector.parent / connector.name.split("-", 1)[0]
    return (_text(card / "device/vendor") or "").strip() == _NVIDIA_PCI_VENDOR


def _display_servers(proc: Path) -> tuple[str, ...]:
    """By name, which is good enough for advice; the agent never decides by name."""
    return tuple(
        sorted(
            f"{name} (pid {path.parent.name})"
            for path in proc.glob("[0-9]*/comm")
            if (name := (_text(path) or "").strip()) in _DISPLAY_SERVERS and _holds(path.parent)
        )
    )


def _holds(process: Path) -> bool:
    try:
        return any(
            os.readlink(descriptor).startswith("/dev/nvidia")
            for descriptor in (process / "fd").iterdir()
        )
    except OSError:
        return False


def _people(etc: Path) -> People:
    accounts = _text(etc / "passwd")
    groups = _text(etc / "group")
    rows = [line.split(":") for line in (accounts or "").splitlines()]
    users = [row for row in rows if len(row) >= 4 and row[2].isdecimal()]
    return People(
        accounts=None if accounts is None else tuple((row[0], int(row[2])) for row in users),
        groups=None if groups is None else tuple(_groups(groups, users)),
    )


def _groups(content: str, users: list[list[str]]) -> list[Group]:
    """Members by /etc/group, and whose first group it is."""
    groups = []
    for line in content.splitlines():
        row = line.split(":")
        if len(row) >= 4 and row[2].isdecimal():
            first = [user[0] for user in users if user[3] == row[2]]
            named = [name.strip() for name in row[3].split(",") if name.strip()]
            members = tuple(sorted({*named, *first}))
            groups.append(Group(name=row[0], gid=int(row[2]), members=members))
    return groups


def _setup(environ: Mapping[str, str], roots: Roots, wall: Callable[[], datetime]) -> Setup:
    read, error = None, ""
    try:
        read = config.read(environ)
    except config.ConfigError as found:
        error = str(found)
    folder = Path(environ.get("BERTH_STATE_DIR", roots.var / "lib/berth"))
    plan, plan_error = _plan(folder / "plan.json")
    boot = (_text(roots.proc / "sys/kernel/random/boot_id") or "").strip()
    host_clock = HostClock(boot=boot or None, wall=wall)
    if plan is not None:
        host_clock.restore(plan.anchor)
    return Setup(
        vendor=environ.get("BERTH_VENDOR", "nvidia"),
        gate=environ.get("BERTH_GATE", "acl"),
        configuration=read,
        configuration_error=error,
        secret=_secret(environ, roots.etc / ENVIRONMENT_FILE),
        plan=plan,
        plan_error=plan_error,
        plan_age_s=(host_clock.now() - plan.as_of).total_seconds() if plan else None,
        clock_offset_s=host_clock.offset_s,
        slurm=_slurm(roots.etc),
        device_plugin=_device_plugin(roots.var / "lib/kubelet/device-plugins"),
    )


def _plan(path: Path) -> tuple[StoredPlan | None, str]:
    """Unlike the agent, the doctor leaves a damaged file where it is."""
    try:
        checksum, _, body = path.read_bytes().partition(b"\n")
        body = body.removesuffix(b"\n")
        if sha256(body).hexdigest().encode() != checksum:
            return None, "its checksum does not match"
        return msgspec.json.decode(body, type=StoredPlan), ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, error.strerror or str(error)
    except msgspec.DecodeError as error:
        return None, str(error)


def _secret(environ: Mapping[str, str], environment_file: Path) -> SecretFile | None:
    """The file that holds the token, if one does."""
    named = environ.get("BERTH_HOST_TOKEN_FILE")
    if not named and "BERTH_HOST_TOKEN" not in _environment_file(environment_file):
        return None
    path = Path(named) if named else environment_file
    try:
        found = path.stat()
    except OSError:
        return None
    return SecretFile(path=path, mode=stat.S_IMODE(found.st_mode), uid=found.st_uid)


def _environment_file(path: Path) -> dict[str, str]:
    """The NAME=value lines of a file as systemd reads it: quotes around a value are not part of it."""
    lines = (_text(path) or "").splitlines()
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith(("#", ";")))
    return {name.strip(): value.strip().strip("\"'") for name, equals, value in pairs if equals}


def _slurm(etc: Path) -> str:
    """The gres.conf that hands out GPUs, or ""."""
    for folder in ("slurm", "slurm-llnl"):
        if _SLURM_GPUS.search(_text(etc / folder / "gres.conf") or ""):
            return f"/etc/{folder}/gres.conf"
    return ""


def _device_plugin(folder: Path) -> str:
    return next((path.name for path in sorted(folder.glob("*nvidia*.sock"))), "")


def _fields(content: str) -> dict[str, str]:
    """``Name: value`` lines."""
    pairs = (line.partition(":") for line in content.splitlines())
    return {name.strip(): value.strip() for name, colon, value in pairs if colon}


def _text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip("\n")
    except OSError:
        return None
