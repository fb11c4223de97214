"""Who gets past any gate, and who cannot be told apart."""

from collections import defaultdict
from collections.abc import Iterator

from workers.host.doctor.facts import Facts, Finding

ADMINISTRATORS = ("sudo", "wheel", "admin")
# Who may start a container or a virtual machine as root, or write to a disk, can become root.
ROOT_BY_THE_BACK_DOOR = ("docker", "lxd", "incus-admin", "libvirt", "disk")


def administrators(facts: Facts) -> Iterator[Finding]:
    """Root on purpose: told, not held against anybody."""
    for name, members in _members(facts, ADMINISTRATORS):
        yield Finding(
            id=f"group.{name}",
            level="ok",
            text=f"Members of {name} may become root, whom no gate holds: {', '.join(members)}.",
        )


def back_doors(facts: Facts) -> Iterator[Finding]:
    for name, members in _members(facts, ROOT_BY_THE_BACK_DOOR):
        yield Finding(
            id=f"group.{name}",
            level="warning",
            text=f"Members of {name} can make themselves root, whom no gate holds: "
            f"{', '.join(members)}.",
            fix=tuple(f"gpasswd -d {member} {name}" for member in members),
        )


def video(facts: Facts) -> Iterator[Finding]:
    group = facts.people.group("video")
    if group is None or not group.members:
        return
    names = ", ".join(group.members)
    opened = [node.path for node in facts.driver.nodes if node.gid == group.gid]
    if opened:
        yield Finding(
            id="group.video",
            level="warning",
            text=f"{', '.join(opened)} belong to group video: its members ({names}) may open them "
            "whenever the agent has not closed them.",
            fix=tuple(f"gpasswd -d {member} video" for member in group.members),
        )
    else:
        text = f"Group video ({names}) owns no GPU's node."
        yield Finding(id="group.video", level="ok", text=text)


def shared_uids(facts: Facts) -> Iterator[Finding]:
    if facts.people.accounts is None:
        text = "/etc/passwd cannot be read."
        yield Finding(id="shared_uid", level="unknown", text=text)
        return
    names = defaultdict(list)
    for name, uid in facts.people.accounts:
        names[uid].append(name)
    shared = {uid: sorted(found) for uid, found in names.items() if len(found) > 1}
    for uid, found in sorted(shared.items()):
        yield Finding(
            id="shared_uid",
            level="warning",
            text=f"{', '.join(found)} share uid {uid}: the kernel takes them for one person, and so "
            "does Berth.",
        )
    if not shared:
        yield Finding(id="shared_uid", level="ok", text="Every account has a uid of its own.")


def _members(facts: Facts, names: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in names:
        group = facts.people.group(name)
        if group and group.members:
            yield name, group.members


CHECKS = (administrators, back_doors, video, shared_uids)
