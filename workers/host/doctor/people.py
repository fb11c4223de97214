"""Who gets past any gate, and who cannot be told apart."""

from collections import defaultdict
from collections.abc import Iterator

from workers.host.doctor.facts import Facts, Finding, Home, ok, unknown, warning

ADMINISTRATORS = ("sudo", "wheel", "admin")
# Who may start a container or a virtual machine as root, or write to a disk, can become root.
ROOT_BY_THE_BACK_DOOR = ("docker", "lxd", "incus-admin", "libvirt", "disk")


def administrators(facts: Facts) -> Iterator[Finding]:
    """Root on purpose: told, not held against anybody."""
    for name, members in _members(facts, ADMINISTRATORS):
        yield ok(
            f"group.{name}",
            f"Members of {name} may become root, whom no gate holds: {', '.join(members)}.",
        )


def back_doors(facts: Facts) -> Iterator[Finding]:
    for name, members in _members(facts, ROOT_BY_THE_BACK_DOOR):
        yield warning(
            f"group.{name}",
            f"Members of {name} can make themselves root, whom no gate holds: "
            f"{', '.join(members)}.",
            *(f"gpasswd -d {member} {name}" for member in members),
        )


def video(facts: Facts) -> Iterator[Finding]:
    group = facts.people.group("video")
    if group is None or not group.members:
        return
    names = ", ".join(group.members)
    opened = [node.path for node in facts.driver.nodes if node.gid == group.gid]
    if opened:
        yield warning(
            "group.video",
            f"{', '.join(opened)} belong to group video: its members ({names}) may open them "
            "whenever the agent has not closed them.",
            *(f"gpasswd -d {member} video" for member in group.members),
        )
    else:
        yield ok("group.video", f"Group video ({names}) owns no GPU's node.")


def shared_uids(facts: Facts) -> Iterator[Finding]:
    if facts.people.accounts is None:
        yield unknown("shared_uid", "/etc/passwd cannot be read.")
        return
    names = defaultdict(list)
    for account in facts.people.accounts:
        names[account.uid].append(account.name)
    shared = {uid: sorted(found) for uid, found in names.items() if len(found) > 1}
    for uid, found in sorted(shared.items()):
        yield warning(
            "shared_uid",
            f"{', '.join(found)} share uid {uid}: the kernel takes them for one person, and so does "
            "Berth.",
        )
    if not shared:
        yield ok("shared_uid", "Every account has a uid of its own.")


def homes(facts: Facts) -> Iterator[Finding]:
    """Who may write into a home can have its owner start a program; who may read it, a token."""
    found = facts.people.homes
    writable = [home for home in found if home.mode & 0o002 and not home.mode & 0o1000]
    for home in writable:
        yield warning(
            "homes",
            f"{home.path} has mode {home.mode:04o}: everybody can write there, and so act as its "
            "owner.",
            f"chmod o-w {home.path}",
        )
    if readable := [home for home in found if home.mode & 0o004]:
        yield ok("homes", f"Everybody can look into {_paths(readable)}.")
    elif found and not writable:
        yield ok("homes", "Nobody can look into the home of somebody else.")


def _paths(homes: list[Home]) -> str:
    """The first few."""
    more = f" and {len(homes) - 5} more" if len(homes) > 5 else ""
    return ", ".join(home.path for home in homes[:5]) + more


def _members(facts: Facts, names: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name in names:
        group = facts.people.group(name)
        if group and group.members:
            yield name, group.members


CHECKS = (administrators, back_doors, video, shared_uids, homes)
