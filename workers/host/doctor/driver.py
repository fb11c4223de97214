"""NVIDIA's driver: its parameters decide whether a closed node stays closed.

The setuid helper nvidia-modprobe, which any user's program starts, puts owner, group and mode of the
nodes to what the parameters say. It compares these three alone, and so leaves an ACL in peace.
"""

import stat
from collections.abc import Iterator, Mapping

from workers.host.doctor.facts import Facts, Finding, error, ok, warning
from workers.host.gates.helper import GATED_MODE, STOCK_MODE, UNSET

ACCESS_GROUP = "gpu"
CONFIGURATION = "/etc/modprobe.d/berth.conf"

Parameters = Mapping[str, int]


def library(facts: Facts) -> Iterator[Finding]:
    if why := facts.driver.library_error:
        yield error(
            "library",
            f"NVIDIA's library cannot be loaded, so no device is seen: {why}.",
            "apt install libnvidia-ml1   # Debian; elsewhere it comes with the driver",
        )
    else:
        yield ok("library", "NVIDIA's library loads.")


def loaded(facts: Facts) -> Iterator[Finding]:
    if facts.driver.parameters is None:
        yield error(
            "driver",
            "NVIDIA's driver is not loaded: there is no /proc/driver/nvidia/params.",
            "modprobe nvidia",
        )
    else:
        yield ok("driver", "NVIDIA's driver is loaded.")


def parameters(facts: Facts) -> Iterator[Finding]:
    """Everything that is wrong, each with the same lines to write."""
    found = facts.driver.parameters
    if found is None:
        return
    wrong = [one for one in (_creation(found), _mode(found), _owner(found), _group(found)) if one]
    for id_, text in wrong:
        yield error(id_, text, *lines_to_write(facts))
    if not wrong:
        gid = found["DeviceFileGID"]
        yield ok(
            "parameters",
            f"The driver keeps its nodes at 0660, owner root, group {gid}: closed stays closed.",
        )


def _creation(found: Parameters) -> tuple[str, str] | None:
    if found.get("ModifyDeviceFiles", 1) == 0:
        return "parameters.modify", (
            "The driver has NVreg_ModifyDeviceFiles=0: nothing creates its nodes after a boot, and "
            "no GPU can be used until somebody does."
        )
    return None


def _mode(found: Parameters) -> tuple[str, str] | None:
    mode = found.get("DeviceFileMode", STOCK_MODE)
    if mode == GATED_MODE:
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
    if uid in {0, UNSET}:
        return None
    return "parameters.owner", (
        f"The driver has NVreg_DeviceFileUID={uid}: that user owns every node and can always open "
        "it. It has to be 0."
    )


def _group(found: Parameters) -> tuple[str, str] | None:
    if found.get("DeviceFileGID", 0) not in {0, UNSET}:
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
    if gid not in {0, UNSET}:
        return gid
    group = facts.people.group(ACCESS_GROUP)
    return group.gid if group and group.gid else None


def persistence(facts: Facts) -> Iterator[Finding]:
    if facts.driver.parameters is None:
        return
    if facts.driver.persistence_daemon:
        yield ok("persistence", "nvidia-persistenced keeps the devices ready.")
    else:
        yield warning(
            "persistence",
            "nvidia-persistenced does not run: while nothing uses a device, the driver lets go of "
            "it, and the next program waits for seconds. The agent keeps it from that while it runs.",
            "systemctl enable --now nvidia-persistenced",
        )


CHECKS = (library, loaded, parameters, persistence)
