"""Stand-in nodes of NVIDIA's major, gates over them, and control groups, for tests as root.

What a person meets at such a node: EACCES where its list says no, EPERM where the kernel's program does,
ENXIO where both let in, since there is no driver behind it.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

from tests.host.people import as_person
from workers.host.gates.acl import AclGate
from workers.host.gates.bpf import BpfGate
from workers.host.gates.helper import MAJOR, HelperSettings
from workers.host.gates.lease_table import LeaseTable, control_groups
from workers.host.gates.originals import Originals

ALICE, BOB, CAROL, ACCESS_GROUP = 61001, 61002, 61003, 61900
GPU = "GPU-a"
# Of this boot, as far as the originals are concerned.
BOOT = "a boot"


def make_node(path: Path, *, minor: int = 0, mode: int = 0o660, major: int = MAJOR) -> str:
    """As the driver makes it: root's, of the access group."""
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(major, minor))
    os.chown(path, 0, ACCESS_GROUP)
    os.chmod(path, mode)
    return str(path)


def acl_gate(
    nodes: Mapping[str, Sequence[str]],
    folder: Path,
    *,
    boot_id: str = BOOT,
    helper_settings: HelperSettings | None = None,
) -> AclGate:
    originals = Originals(folder / "originals.json", boot_id=boot_id)
    return AclGate(nodes, originals, helper_settings=lambda: helper_settings)


def bpf_gate(nodes: Mapping[str, Sequence[str]], folder: Path, groups: Sequence[str]) -> BpfGate:
    return BpfGate(acl_gate(nodes, folder), LeaseTable(groups))


@contextlib.contextmanager
def control_group(*names: str) -> Iterator[str]:
    """A parent of its own, so that tests that run beside it are no neighbours; and these groups below it."""
    (parent,) = control_groups([f"berth-test-{uuid4().hex[:12]}"])
    groups = [f"{parent}/{name}" for name in names]
    made = [parent]
    try:
        os.mkdir(parent)
        for group in groups:
            os.mkdir(group)
            made.append(group)
        yield groups[0]
    finally:
        for group in reversed(made):
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(group)


def opening(
    path: str, uid: int, *groups: int, inside: str | None = None, how: int = os.O_RDWR
) -> int:
    """The error number that this person meets, ``inside`` a control group; 0 if it opens."""

    def attempt() -> int:
        try:
            os.close(os.open(path, how))
        except OSError as error:
            return error.errno or -1
        return 0

    def joined() -> int:
        if inside:
            Path(inside, "cgroup.procs").write_text(str(os.getpid()))
        return as_person(uid, attempt, groups=groups)

    return as_person(0, joined)
