"""Kernel, rights, control groups, and which gates would work."""

import os
import re
import sys
import tempfile
from pathlib import Path

from workers.host.doctor.facts import CgroupMode, Machine
from workers.host.doctor.reading.files import Roots, text
from workers.host.fields import fields
from workers.host.gates.posix_acl import ATTRIBUTE, encode, entries_for


def read(roots: Roots) -> Machine:
    status = fields(text(roots.proc / "self/status") or "")
    capabilities = status.get("CapEff")
    uids = status.get("Uid", "").split()
    try:
        namespace = os.readlink(roots.proc / "self/ns/pid")
    except OSError:
        namespace = None
    return Machine(
        kernel=text(roots.proc / "sys/kernel/osrelease"),
        python=(sys.version_info.major, sys.version_info.minor),
        pid_namespace=namespace,
        euid=int(uids[1]) if len(uids) > 1 else None,
        capabilities=int(capabilities, 16) if capabilities else None,
        acl_errno=_acl_errno(roots.dev),
        cgroups=_cgroups(roots.sys / "fs/cgroup"),
        hidepid=_hidepid(text(roots.proc / "self/mounts")),
    )


def _acl_errno(dev: Path) -> int:
    """0 if this file system takes an ACL: what it does to a file it does to a node."""
    try:
        with tempfile.NamedTemporaryFile(dir=dev, prefix=".berth-doctor-") as file:
            content = encode(entries_for([65534], group_open=False))
            os.setxattr(file.name, ATTRIBUTE, content)
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
        words = line.split()
        if len(words) > 3 and words[1] == "/proc":
            found = re.search(r"\bhidepid=(\w+)", words[3])
            return found.group(1) if found else ""
    return ""
