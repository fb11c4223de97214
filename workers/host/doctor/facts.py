"""What the doctor knows of a host, and what it says. Everything is read before anything is judged.

None means "could not be read", never "not there".
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from reservations.core.wire import DeviceInfo
from workers.host.config import Config
from workers.host.plan_store import StoredPlan

Level = Literal["ok", "warning", "error", "unknown"]
CgroupMode = Literal["v2", "hybrid", "v1", "none"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One answer: ``text`` in plain sentences, ``fix`` the lines to type or to write."""

    id: str
    level: Level
    text: str
    fix: tuple[str, ...] = ()


def ok(id_: str, text: str) -> Finding:
    return Finding(id=id_, level="ok", text=text)


def warning(id_: str, text: str, *fix: str) -> Finding:
    return Finding(id=id_, level="warning", text=text, fix=fix)


def error(id_: str, text: str, *fix: str) -> Finding:
    return Finding(id=id_, level="error", text=text, fix=fix)


def unknown(id_: str, text: str, *fix: str) -> Finding:
    return Finding(id=id_, level="unknown", text=text, fix=fix)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """``capabilities`` is the effective set as in /proc; ``acl_errno`` 0 where an ACL could be set."""

    kernel: str | None
    python: tuple[int, int]
    pid_namespace: str | None
    euid: int | None
    capabilities: int | None
    acl_errno: int
    cgroups: CgroupMode
    hidepid: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A device node: its path, and the bits of its mode that chmod sets."""

    path: str
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Capability:
    """One door to a MIG instance: its file in /proc, its node, and the mode that the driver wants.

    ``kept``: nvidia-modprobe puts the node back to that mode.
    """

    path: str
    node: Node | None
    mode: int
    kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """``parameters`` as /proc/driver/nvidia/params has them; None where no driver is loaded."""

    parameters: Mapping[str, int] | None
    nodes: tuple[Node, ...]
    control: Node | None
    capabilities: tuple[Capability, ...]
    render_nodes: tuple[Node, ...]
    persistence_daemon: bool
    connectors: tuple[str, ...]
    display_servers: tuple[str, ...]
    library_error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    name: str
    gid: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    name: str
    uid: int
    home: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    path: str
    mode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """From /etc/passwd and /etc/group alone. ``homes`` are those of people, on this machine's disks."""

    accounts: tuple[Account, ...] | None
    groups: tuple[Group, ...] | None
    homes: tuple[Home, ...]

    def group(self, name: str) -> Group | None:
        return next((group for group in self.groups or () if group.name == name), None)

    def group_of(self, gid: int) -> Group | None:
        return next((group for group in self.groups or () if group.gid == gid), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFile:
    path: Path
    mode: int
    uid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """``plan_age_s`` on the server's clock, ``clock_offset_s`` wall clock minus that clock.

    ``devices`` are those that the agent has seen since the boot. ``bpf_obstacle`` says why this kernel
    keeps no leases; it is empty where it does.
    """

    vendor: str
    gate: str
    bpf_obstacle: str
    configuration: Config | None
    configuration_error: str
    secret: SecretFile | None
    plan: StoredPlan | None
    plan_error: str
    devices: tuple[DeviceInfo, ...]
    plan_age_s: float | None
    clock_offset_s: float | None
    slurm: str
    device_plugin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    machine: Machine
    driver: Driver
    people: People
    setup: Setup
