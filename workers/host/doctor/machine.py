"""Kernel, Python and the rights of the agent."""

import errno
import os
import re
from collections.abc import Iterator

from workers.host.doctor.facts import Facts, Finding
from workers.host.processes import INIT_PID_NAMESPACE_INODE

OLDEST_KERNEL = (5, 3)
OLDEST_PYTHON = (3, 11)
# include/uapi/linux/capability.h
NEEDED = {
    "CAP_CHOWN": 0,  # make a node root's
    "CAP_DAC_READ_SEARCH": 2,  # look into the descriptors of everybody
    "CAP_FOWNER": 3,  # set the ACL and mode of a node
    "CAP_KILL": 5,  # signal the processes of everybody
    "CAP_SYS_PTRACE": 19,  # follow the descriptors of everybody
}


def kernel(facts: Facts) -> Iterator[Finding]:
    release = facts.machine.kernel or ""
    found = re.match(r"(\d+)\.(\d+)", release)
    if not found:
        yield Finding(id="kernel", level="unknown", text="The kernel's version cannot be read.")
    elif (int(found[1]), int(found[2])) < OLDEST_KERNEL:
        yield Finding(
            id="kernel",
            level="error",
            text=f"Kernel {release} is too old: 5.3 is the first with which a process can be "
            "signalled without the risk of reaching another one.",
        )
    else:
        yield Finding(id="kernel", level="ok", text=f"Kernel {release} is new enough.")


def python(facts: Facts) -> Iterator[Finding]:
    major, minor = facts.machine.python
    if (major, minor) < OLDEST_PYTHON:
        text = f"Python {major}.{minor} is too old: the agent needs 3.11."
        yield Finding(id="python", level="error", text=text)
    else:
        text = f"Python {major}.{minor} is new enough."
        yield Finding(id="python", level="ok", text=text)


def pid_namespace(facts: Facts) -> Iterator[Finding]:
    """Against the kernel's own number: in a container, pid 1 is in the container's namespace too."""
    namespace = facts.machine.pid_namespace
    if namespace is None:
        text = "The pid namespace cannot be read; the agent would stop nobody."
        yield Finding(id="pid_namespace", level="unknown", text=text)
    elif namespace != f"pid:[{INIT_PID_NAMESPACE_INODE}]":
        yield Finding(
            id="pid_namespace",
            level="error",
            text="This runs in a pid namespace of its own, where pids mean something else than to "
            "the driver. The agent stops nobody from in here.",
            fix=("docker run --pid=host …", "hostPID: true"),
        )
    else:
        yield Finding(id="pid_namespace", level="ok", text="This runs in the host's pid namespace.")


def rights(facts: Facts) -> Iterator[Finding]:
    machine = facts.machine
    if machine.euid is None or machine.capabilities is None:
        text = "Uid and capabilities cannot be read."
        yield Finding(id="rights", level="unknown", text=text)
        return
    have = machine.capabilities
    missing = [name for name, bit in NEEDED.items() if not have >> bit & 1]
    if machine.euid != 0:
        yield Finding(
            id="rights",
            level="error",
            text=f"This runs as uid {machine.euid}. The agent has to be root, to whom the nodes "
            "belong.",
            fix=("sudo berth-host doctor",),
        )
    elif missing:
        yield Finding(
            id="rights",
            level="error",
            text=f"Root lacks {_listed(missing)} here, without which devices cannot be closed or "
            "holders not found and stopped.",
            fix=(f"CapabilityBoundingSet={' '.join(NEEDED)}",),
        )
    else:
        text = "This is root, with every capability that the agent needs."
        yield Finding(id="rights", level="ok", text=text)


def acl(facts: Facts) -> Iterator[Finding]:
    code = facts.machine.acl_errno
    if code == 0:
        text = "/dev takes access control lists (tried)."
        yield Finding(id="acl", level="ok", text=text)
    elif code == errno.ENOTSUP:
        yield Finding(
            id="acl",
            level="error",
            text="/dev takes no access control lists, so the gate `acl` cannot work: the kernel was "
            "built without them.",
            fix=("CONFIG_DEVTMPFS=y", "CONFIG_TMPFS_POSIX_ACL=y"),
        )
    else:
        why = os.strerror(code) if code > 0 else "for a reason that is not known"
        text = f"Whether /dev takes access control lists could not be tried: {why}."
        yield Finding(id="acl", level="unknown", text=text)


def gates(facts: Facts) -> Iterator[Finding]:
    """Which gates would work, and whether the chosen one is among them."""
    available = ["acl"] if facts.machine.acl_errno == 0 and facts.machine.euid == 0 else []
    available.append("record")
    chosen = facts.setup.gate
    here = f"Gates that work here: {_listed(available)}"
    if chosen == "record" and facts.setup.vendor != "simulated":
        yield Finding(
            id="gate",
            level="warning",
            text=f"{here}. BERTH_GATE=record closes nothing: it only remembers what it was told.",
            fix=("BERTH_GATE=acl",),
        )
    elif chosen == "acl" and chosen not in available:
        text = f"{here}. The chosen one, acl, does not."
        yield Finding(id="gate", level="error", text=text)
    else:
        yield Finding(id="gate", level="ok", text=f"{here}; chosen: {chosen}.")


def cgroups(facts: Facts) -> Iterator[Finding]:
    """Only told: the gate `acl` needs none, and units are read from any of them."""
    words = {
        "v2": "Control groups are version 2.",
        "hybrid": "Control groups are version 1 with an empty version 2 beside it.",
        "v1": "Control groups are version 1.",
        "none": "There are no control groups: units and containers cannot be told apart.",
    }
    mode = facts.machine.cgroups
    yield Finding(id="cgroups", level="warning" if mode == "none" else "ok", text=words[mode])


def hidepid(facts: Facts) -> Iterator[Finding]:
    value = facts.machine.hidepid
    if value is None:
        text = "The mount options of /proc cannot be read."
        yield Finding(id="hidepid", level="unknown", text=text)
    elif value in {"", "0", "off"}:
        yield Finding(id="hidepid", level="ok", text="/proc shows every process.")
    elif (
        facts.machine.euid == 0
        and (facts.machine.capabilities or 0) >> NEEDED["CAP_SYS_PTRACE"] & 1
    ):
        text = f"/proc is mounted with hidepid={value}; root still sees every process."
        yield Finding(id="hidepid", level="ok", text=text)
    else:
        yield Finding(
            id="hidepid",
            level="error",
            text=f"/proc is mounted with hidepid={value}, which hides the processes of others from "
            "an agent without CAP_SYS_PTRACE.",
        )


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]


CHECKS = (kernel, python, pid_namespace, rights, acl, gates, cgroups, hidepid)
