"""The nodes that lead to a GPU: those that Berth gates, the one that all need, and the side doors."""

from collections.abc import Iterator

from workers.host.doctor.driver import access_gid, lines_to_write
from workers.host.doctor.facts import Capability, Facts, Finding, Node, error, ok, unknown, warning


def nodes(facts: Facts) -> Iterator[Finding]:
    driver = facts.driver
    if driver.parameters is None:
        return
    if not driver.nodes:
        yield error(
            "nodes",
            "There is no /dev/nvidia0: the driver is loaded, but nothing has created its nodes.",
            "nvidia-smi",
        )
        return
    gid = access_gid(facts)
    wrong = [finding for node in driver.nodes for finding in _wrong(node, gid)]
    yield from wrong
    if not wrong:
        count = len(driver.nodes)
        are = "nodes are" if count > 1 else "node is"
        yield ok("nodes", f"{count} device {are} root's, with mode 0660.")


def _wrong(node: Node, gid: int | None) -> Iterator[Finding]:
    if node.mode & 0o007:
        yield error(
            "nodes",
            f"{node.path} has mode {node.mode:04o}: it is open to everybody.",
            f"chmod 0660 {node.path}",
        )
    if node.uid != 0:
        yield error(
            "nodes",
            f"{node.path} belongs to uid {node.uid}, who can always open it.",
            f"chown root {node.path}",
        )
    if gid is not None and node.gid != gid:
        yield warning(
            "nodes",
            f"{node.path} belongs to group {node.gid}, not to {gid}, the access group.",
            f"chgrp {gid} {node.path}",
        )


def control_node(facts: Facts) -> Iterator[Finding]:
    """The one node that every program opens, whichever GPU it uses."""
    node = facts.driver.control
    if node is None or node.mode & 0o006 == 0o006:
        return
    if node.mode & 0o060 == 0o060 and node.gid != 0:
        yield _members(facts, node.gid)
        return
    yield error(
        "control_node",
        f"{node.path} has mode {node.mode:04o} and group {node.gid}: nobody but root can use any "
        "GPU.",
        *lines_to_write(facts),
    )


def _members(facts: Facts, gid: int) -> Finding:
    group = facts.people.group_of(gid)
    name = group.name if group else str(gid)
    if group and group.members:
        return ok("access_group", f"The access group is {name}: {', '.join(group.members)}.")
    return unknown(
        "access_group",
        f"The access group {name} has no members in /etc/group. If none come from a directory "
        "either, nobody can use a GPU.",
        f"usermod -aG {name} NAME   # everybody who may use GPUs",
    )


def mig(facts: Facts) -> Iterator[Finding]:
    """What a closed node is for a GPU, a closed capability is for an instance."""
    found = facts.driver.capabilities
    wrong = [finding for one in found for finding in _open_capability(one)]
    yield from wrong
    if found and not wrong:
        yield ok("mig", f"{len(found)} MIG capabilities keep the rights that they are given.")


def _open_capability(one: Capability) -> Iterator[Finding]:
    if one.node is None:
        yield error(
            "mig",
            f"{one.path} has no node below /dev/nvidia-caps: its MIG instance cannot be used.",
            "nvidia-smi -L",
        )
    elif one.kept and one.mode & 0o007:
        yield warning(
            "mig",
            f"{one.node.path} belongs to a MIG instance, and any user can have it put back to mode "
            f"{one.mode:04o}, through nvidia-modprobe. The setting lasts until the next boot or "
            "repartition.",
            f'echo "DeviceFileModify: 0" > {one.path}',
        )


def render_nodes(facts: Facts) -> Iterator[Finding]:
    for node in facts.driver.render_nodes:
        who = _who_opens(facts, node)
        if who:
            yield warning(
                "render_node",
                f"{node.path} leads to a GPU as well, to draw and to encode, and Berth does not gate "
                f"it. It is open to {who}.",
                f"chmod 0600 {node.path}   # until udev makes it anew",
            )
        else:
            yield ok("render_node", f"{node.path} leads to a GPU as well; it is closed.")


def _who_opens(facts: Facts, node: Node) -> str:
    if node.mode & 0o006:
        return "everybody"
    group = facts.people.group_of(node.gid)
    if not node.mode & 0o060 or group is None or not group.members or node.gid == 0:
        return ""
    return f"group {group.name}: {', '.join(group.members)}"


CHECKS = (nodes, control_node, mig, render_nodes)
