"""Kernel, Python and the rights of the agent."""

import errno
import os
import re
from collections.abc import Iterator

from workers.host.doctor.facts import Facts, Finding, error, ok, unknown, warning
from workers.host.processes import INIT_PID_NAMESPACE_INODE

OLDEST_KERNEL = (5, 3)
OLDEST_PYTHON = (3, 11)
# include/uapi/linux/capability.h
NEEDED = {
    "CAP_CHOWN": 0,  # make a node root's
    "CAP_DAC_OVERRIDE": 1,  # write to the terminals of everybody, `mesg n` or not
    "CAP_DAC_READ_SEARCH": 2,  # look into the descriptors of everybody
    "CAP_FOWNER": 3,  # set the ACL and mode of a node
    "CAP_KILL": 5,  # signal the processes of everybody
    "CAP_SYS_PTRACE": 19,  # follow the descriptors of everybody
}
# Besides, for the gate `bpf`: CAP_BPF and CAP_NET_ADMIN load and attach its program, but to find the one
# that an earlier agent left, kernel/bpf/syscall.c asks for this, which is enough for all of it.
NEEDED_FOR_BPF = {"CAP_SYS_ADMIN": 21}


def kernel(facts: Facts) -> Iterator[Finding]:
    release = facts.machine.kernel or ""
    found = re.match(r"(\d+)\.(\d+)", release)
    if not found:
        yield unknown("kernel", "The kernel's version cannot be read.")
    elif (int(found[1]), int(found[2])) < OLDEST_KERNEL:
        yield error(
            "kernel",
            f"Kernel {release} is too old: 5.3 is the first with which a process can be signalled "
            "without the risk of reaching another one.",
        )
    else:
        yield ok("kernel", f"Kernel {release} is new enough.")


def python(facts: Facts) -> Iterator[Finding]:
    major, minor = facts.machine.python
    if (major, minor) < OLDEST_PYTHON:
        yield error("python", f"Python {major}.{minor} is too old: the agent needs 3.11.")
    else:
        yield ok("python", f"Python {major}.{minor} is new enough.")


def pid_namespace(facts: Facts) -> Iterator[Finding]:
    """Against the kernel's own number: in a container, pid 1 is in the container's namespace too."""
    namespace = facts.machine.pid_namespace
    if namespace is None:
        yield unknown(
            "pid_namespace", "The pid namespace cannot be read; the agent would stop nobody."
        )
    elif namespace != f"pid:[{INIT_PID_NAMESPACE_INODE}]":
        yield error(
            "pid_namespace",
            "This runs in a pid namespace of its own, where pids mean something else than to the "
            "driver. The agent stops nobody from in here.",
            "docker run --pid=host …",
            "hostPID: true",
        )
    else:
        yield ok("pid_namespace", "This runs in the host's pid namespace.")


def rights(facts: Facts) -> Iterator[Finding]:
    machine = facts.machine
    if machine.euid is None or machine.capabilities is None:
        yield unknown("rights", "Uid and capabilities cannot be read.")
        return
    have = machine.capabilities
    needed = NEEDED | (NEEDED_FOR_BPF if facts.setup.gate == "bpf" else {})
    missing = [name for name, bit in needed.items() if not have >> bit & 1]
    if machine.euid != 0:
        yield error(
            "rights",
            f"This runs as uid {machine.euid}. The agent has to be root, to whom the nodes belong.",
            "sudo berth-host doctor",
        )
    elif missing:
        yield error(
            "rights",
            f"Root lacks {_listed(missing)} here, without which devices cannot be closed or holders "
            "not found and stopped.",
            f"CapabilityBoundingSet={' '.join(needed)}",
        )
    else:
        yield ok("rights", "This is root, with every capability that the agent needs.")


def acl(facts: Facts) -> Iterator[Finding]:
    code = facts.machine.acl_errno
    if code == 0:
        yield ok("acl", "/dev takes access control lists (tried).")
    elif code == errno.ENOTSUP:
        yield error(
            "acl",
            "/dev takes no access control lists, so the gate `acl` cannot work: the kernel was built "
            "without them.",
            "CONFIG_DEVTMPFS=y",
            "CONFIG_TMPFS_POSIX_ACL=y",
        )
    else:
        why = os.strerror(code) if code > 0 else "for a reason that is not known"
        yield unknown("acl", f"Whether /dev takes access control lists could not be tried: {why}.")


def gates(facts: Facts) -> Iterator[Finding]:
    """Which gates would work, and whether the chosen one is among them."""
    available = ["acl"] if facts.machine.acl_errno == 0 and facts.machine.euid == 0 else []
    available += ["bpf"] if available and not facts.setup.bpf_obstacle else []
    available.append("record")
    chosen = facts.setup.gate
    here = f"Gates that work here: {_listed(available)}"
    if chosen == "record" and facts.setup.vendor != "simulated":
        yield warning(
            "gate",
            f"{here}. BERTH_GATE=record closes nothing: it only remembers what it was told.",
            "BERTH_GATE=acl",
        )
    elif chosen == "acl" and chosen not in available:
        yield error("gate", f"{here}. The chosen one, acl, does not.")
    elif chosen == "bpf" and chosen not in available:
        text = f"{here}. The chosen one, bpf, does not, so no lease ends in the kernel"
        why = facts.setup.bpf_obstacle
        yield warning("gate", f"{text}: {why}." if why else f"{text}.")
    else:
        yield ok("gate", f"{here}; chosen: {chosen}.")


def cgroups(facts: Facts) -> Iterator[Finding]:
    """Only told: the gate `acl` needs none, and units are read from any of them."""
    words = {
        "v2": "Control groups are version 2.",
        "hybrid": "Control groups are version 1 with an empty version 2 beside it.",
        "v1": "Control groups are version 1.",
    }
    if facts.machine.cgroups == "none":
        yield warning(
            "cgroups", "There are no control groups: units and containers cannot be told apart."
        )
    else:
        yield ok("cgroups", words[facts.machine.cgroups])


def hidepid(facts: Facts) -> Iterator[Finding]:
    value = facts.machine.hidepid
    if value is None:
        yield unknown("hidepid", "The mount options of /proc cannot be read.")
    elif value in {"", "0", "off"}:
        yield ok("hidepid", "/proc shows everybody every process, with its command line.")
    elif _may_trace(facts):
        yield ok(
            "hidepid", f"/proc is mounted with hidepid={value}; root still sees every process."
        )
    else:
        yield error(
            "hidepid",
            f"/proc is mounted with hidepid={value}, which hides the processes of others from an "
            "agent without CAP_SYS_PTRACE.",
        )


def _may_trace(facts: Facts) -> bool:
    have = facts.machine.capabilities or 0
    return facts.machine.euid == 0 and bool(have >> NEEDED["CAP_SYS_PTRACE"] & 1)


def _listed(words: list[str]) -> str:
    return ", ".join(words[:-1]) + " and " + words[-1] if len(words) > 1 else words[0]


CHECKS = (kernel, python, pid_namespace, rights, acl, gates, cgroups, hidepid)
