"""What NVIDIA's setuid helper puts device nodes to, as the driver tells it.

Any user's program starts it, so a gate that wants something else is undone at once. It compares
owner, group and mode alone, and knows nothing of access control lists.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from workers.host.fields import numbers

PARAMETERS = Path("/proc/driver/nvidia/params")
MAJOR = 195
GATED_MODE = 0o660
# With this one, which is the driver's own, a gate holds until the helper comes by, and is put right then.
STOCK_MODE = 0o666
# -1, as an unsigned number: not said.
UNSET = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperSettings:
    """``gid`` is None where the driver does not say."""

    uid: int = 0
    gid: int | None = None
    mode: int = STOCK_MODE

    @property
    def objection(self) -> str:
        """Why no gate can stand under these settings; empty where one can."""
        if self.mode not in {GATED_MODE, STOCK_MODE}:
            word = stat.filemode(stat.S_IFCHR | self.mode)
            return f"the driver keeps its nodes at {word}; see `berth-host doctor`"
        if self.uid != 0:
            return f"the driver gives its nodes to uid {self.uid}; see `berth-host doctor`"
        return ""


def read(path: Path = PARAMETERS) -> HelperSettings | None:
    """None where no driver is loaded, or where it has the helper leave its nodes alone."""
    try:
        found = numbers(path.read_text(errors="replace"))
    except OSError:
        return None
    if found.get("ModifyDeviceFiles", 1) == 0:
        return None
    uid, gid = found.get("DeviceFileUID", 0), found.get("DeviceFileGID", UNSET)
    return HelperSettings(
        uid=0 if uid == UNSET else uid,
        gid=None if gid == UNSET else gid,
        mode=found.get("DeviceFileMode", STOCK_MODE),
    )


def governs(node: str) -> bool:
    """Whether the helper looks after this node.

    Raises:
        OSError: There is no such node.
    """
    found = os.stat(node)
    return stat.S_ISCHR(found.st_mode) and os.major(found.st_rdev) == MAJOR
