"""NVIDIA's driver: its parameters decide whether a closed node stays closed.

The setuid helper nvidia-modprobe, which any user's program starts, puts owner, group and mode of the
nodes to what the parameters say. It compares these three alone, and so leaves an ACL in peace.
"""

import stat
from collections.abc import Iterator, Mapping

from workers.host.doctor.facts import Driver, Facts, Finding

ACCESS_GROUP = "gpu"
CONFIGURATION = "/etc/modprobe.d/berth.conf"
RIGHT_MODE = 0o660
# The helper is also told -1 as an unsigned number where nothing is set.
_UNSET = 0xFFFFFFFF

Parameters = Mapping[str, int]


def applies(facts: Facts) -> bool:
    return facts.setup.vendor == "nvidia"


def library(facts: Facts) -> Iterator[Finding]:
    if error := facts.driver.library_error:
        yield Finding(
            id="library",
            level="error",
            text=f"NVIDIA's library cannot be loaded, so no device is seen: {error}.",
            fix=("apt install libnvidia-ml1   # Debian; elsewhere it comes with the driver",),
        )
    else:
        yield Finding(id="library", level="ok", text="NVIDIA's library loads.")


def loaded(facts: Facts) -> Iterator[Finding]:
    if facts.driver.parameters is None:
        yield Finding(
            id="driver",
            level="error",
            text="NVIDIA's driver is not loaded: there is no /proc/driver/nvidia/params.",
            fix=("modprobe nvidia",),
        )
    else:
        yield Finding(id="driver", level="ok", text="NVIDIA's driver is loaded.")


def parameters(facts: Facts) -> Iterator[Finding]:
    """Everything that is wrong, each with the same lines to write."""
    found = facts.driver.parameters
    if found is None:
        return
    fix = lines_to_write(facts)
    wrong = [
        text for text in (_creation(found), _mode(found), _owner(found), _group(found)) if text
    ]
    for id_, text in wrong:
        yield Finding(id=id_, level="error", text=text, fix=fix)
    if not wrong:
        gid = found["DeviceFileGID"]
        text = f"The driver keeps its nodes at 0660, owner root, group {gid}: closed stays closed."
        yield Finding(id="parameters", level="ok", text=text)


def _creation(found: Parameters) -> tuple[str, str] | None:
    if found.get("ModifyDeviceFiles", 1) == 0:
        return "parameters.modify", (
            "The driver has NVreg_ModifyDeviceFiles=0: nothing creates its nodes after a boot, and "
            "no GPU can be used until somebody does."
        )
    return None


def _mode(found: Parameters) -> tuple[str, str] | None:
    mode = found.get("DeviceFileMode", 0o666)
    if mode == RIGHT_MODE:
        return None
    if mode == 660:
        return "parameters.mode", (
            "The driver has NVreg_DeviceFileMode=660, a decimal number, which is the mode "
            f"{stat.filemode(mode | stat.S_IFCHR)}. It has to be octal, with a leading zero: 0660."
        )
    return "parameters.mode", (
        f"The driver has NVreg_DeviceFileMode={mode:04o}: any user can have a closed node put back to "
        "that, through nvidia-modprobe. It has to be 0660."
    )


def _owner(found: Parameters) -> tuple[str, str] | None:
    uid = found.get("DeviceFileUID", 0)
    if uid in {0, _UNSET}:
        return None
    return "parameters.owner", (
        f"The driver has NVreg_DeviceFileUID={uid}: that user owns every node and can always open "
        "it. It has to be 0."
    )


def _group(found: Parameters) -> tuple[str, str] | None:
    if found.get("DeviceFileGID", 0) not in {0, _UNSET}:
        return None
    return "parameters.group", (
        "The driver has NVreg_DeviceFileGID=0: with mode 0660, /dev/nvidiactl is closed to everybody "
        "but root, and nobody can use any GPU. It has to be the group of all who may use GPUs."
    )


def lines_to_write(facts: Facts) -> tuple[str, ...]:
    """Commands that write the one right line and put it into force."""
    gid = access_gid(facts)
    first: tuple[str, ...] = ()
    number = str(gid)
    if gid is None:
        first = (f"groupadd --system {ACCESS_GROUP}",)
        number = f"$(getent group {ACCESS_GROUP} | cut -d: -f3)"
    line = (
        f"options nvidia NVreg_DeviceFileUID=0 NVreg_DeviceFileGID={number} "
        "NVreg_DeviceFileMode=0660"
    )
    return (
        *first,
        f'echo "{line}" > {CONFIGURATION}',
        "update-initramfs -u   # Debian, Ubuntu; dracut -f on Fedora, RHEL, SUSE",
        "reboot",
    )


def access_gid(facts: Facts) -> int | None:
    """The group that the driver gives its nodes to, else the one called `gpu`."""
    gid = (facts.driver.parameters or {}).get("DeviceFileGID", 0)
    if gid not in {0, _UNSET}:
        return gid
    group = facts.people.group(ACCESS_GROUP)
    return group.gid if group and group.gid else None


def nodes(facts: Facts) -> Iterator[Finding]:
    driver = facts.driver
    if driver.parameters is None:
        return
    if not driver.nodes:
        yield Finding(
            id="nodes",
            level="error",
            text="There is no /dev/nvidia0: the driver is loaded, but nothing has created its nodes.",
            fix=("nvidia-smi",),
        )
        return
    wrong = list(_wrong_nodes(driver, access_gid(facts)))
    yield from wrong
    if not wrong:
        count = len(driver.nodes)
        text = f"{count} device node{'s are' if count > 1 else ' is'} root's, with mode 0660."
        yield Finding(id="nodes", level="ok", text=text)


def _wrong_nodes(driver: Driver, gid: int | None) -> Iterator[Finding]:
    for node in driver.nodes:
        if node.mode & 0o007:
            yield Finding(
                id="nodes",
                level="error",
                text=f"{node.path} has mode {node.mode:04o}: it is open to everybody.",
                fix=(f"chmod 0660 {node.path}",),
            )
        if node.uid != 0:
            yield Finding(
                id="nodes",
                level="error",
                text=f"{node.path} belongs to uid {node.uid}, who can always open it.",
                fix=(f"chown root {node.path}",),
            )
        if gid is not None and node.gid != gid:
            yield Finding(
                id="nodes",
                level="warning",
                text=f"{node.path} belongs to group {node.gid}, not to {gid}, the access group.",
                fix=(f"chgrp {gid} {node.path}",),
            )


def control_node(facts: Facts) -> Iterator[Finding]:
    """The one node that every program opens, whichever GPU it uses."""
    node = facts.driver.control
    if node is None or node.mode & 0o006 == 0o006:
        return
    if node.mode & 0o060 == 0o060 and node.gid != 0:
        yield from _members(facts, node.gid)
        return
    yield Finding(
        id="control_node",
        level="error",
        text=f"{node.path} has mode {node.mode:04o} and group {node.gid}: nobody but root can use "
        "any GPU.",
        fix=lines_to_write(facts),
    )


def _members(facts: Facts, gid: int) -> Iterator[Finding]:
    group = facts.people.group_of(gid)
    name = group.name if group else str(gid)
    if group and group.members:
        text = f"The access group is {name}: {', '.join(group.members)}."
        yield Finding(id="access_group", level="ok", text=text)
        return
    yield Finding(
        id="access_group",
        level="unknown",
        text=f"The access group {name} has no members in /etc/group. If none come from a directory "
        "either, nobody can use a GPU.",
        fix=(f"usermod -aG {name} NAME   # everybody who may use GPUs",),
    )


def display(facts: Facts) -> Iterator[Finding]:
    used = [*facts.driver.connectors, *facts.driver.display_servers]
    if used:
        yield Finding(
            id="display",
            level="warning",
            text=f"A display is driven by a GPU of this host ({', '.join(used)}). Processes that "
            "only draw are never stopped, and closing that GPU keeps the next desktop from "
            "starting.",
            fix=("leave that device out of `managed`, or give the desktop a card of its own",),
        )
    else:
        yield Finding(id="display", level="ok", text="No display is seen on a GPU of this host.")


CHECKS = (library, loaded, parameters, nodes, control_node, display)
