"""What the doctor says, to the letter. Who gets past any gate."""

import pytest

from tests.host.fake_machine import GPU_GID, PARAMETERS, finding

# Nodes of root's can be made by root alone.
pytestmark = pytest.mark.root


def test_who_can_become_root_is_named(machine):
    machine.change(
        "etc/group", "video:x:44:", "video:x:44:dan\nsudo:x:27:eve\ndocker:x:998:bob,carl"
    )

    findings = {one.id: one for one in machine.examine()}

    assert findings["group.docker"] == finding(
        "group.docker",
        "warning",
        "Members of docker can make themselves root, whom no gate holds: bob, carl.",
        "gpasswd -d bob docker",
        "gpasswd -d carl docker",
    )
    assert findings["group.sudo"] == finding(
        "group.sudo", "ok", "Members of sudo may become root, whom no gate holds: eve."
    )
    assert findings["group.video"] == finding(
        "group.video", "ok", "Group video (dan) owns no GPU's node."
    )


def test_somebody_whose_first_group_is_docker_is_a_member_too(machine):
    machine.change("etc/group", "video:x:44:", "docker:x:998:")
    machine.change("etc/passwd", "alice:x:1001:1001", "alice:x:1001:998")

    (complaint,) = machine.complaints()

    assert complaint.text.endswith("whom no gate holds: alice.")


def test_members_of_video_are_named_where_it_owns_a_node(machine):
    machine.change("etc/group", "video:x:44:", "video:x:44:dan")
    machine.change(PARAMETERS, f"DeviceFileGID: {GPU_GID}", "DeviceFileGID: 44")
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        machine.node(name, gid=44)

    assert machine.complaints() == [
        finding(
            "group.video",
            "warning",
            "/dev/nvidia0, /dev/nvidia1 belong to group video: its members (dan) may open them "
            "whenever the agent has not closed them.",
            "gpasswd -d dan video",
        )
    ]


def test_people_who_share_a_uid_are_named(machine):
    machine.change("etc/passwd", "alice:x:1001", "lab:x:1001:1001::/:/bin/sh\nalice:x:1001")

    assert machine.complaints() == [
        finding(
            "shared_uid",
            "warning",
            "alice, lab share uid 1001: the kernel takes them for one person, and so does Berth.",
        )
    ]


def test_a_home_into_which_everybody_can_write_is_an_open_door(machine):
    machine.home("/home/alice", mode=0o777)

    assert machine.complaints() == [
        finding(
            "homes",
            "warning",
            "/home/alice has mode 0777: everybody can write there, and so act as its owner.",
            "chmod o-w /home/alice",
        )
    ]


def test_homes_into_which_everybody_can_look_are_told(machine):
    machine.home("/home/alice", mode=0o755)

    (told,) = (one for one in machine.examine() if one.id == "homes")

    assert told == finding("homes", "ok", "Everybody can look into /home/alice.")


def test_homes_on_a_server_that_may_be_gone_are_not_looked_at(machine):
    machine.change("etc/passwd", "/home/alice", "/net/alice")
    machine.home("/net/alice", mode=0o777)

    assert machine.complaints() == []
