"""What the doctor says, to the letter. The nodes that lead to a GPU."""

import pytest

from tests.host.fake_machine import GPU_GID, LINES, finding

# Nodes of root's can be made by root alone.
pytestmark = pytest.mark.root


def test_a_control_node_that_is_closed_is_an_error(machine):
    machine.node("nvidiactl", gid=0)

    assert machine.complaints() == [
        finding(
            "control_node",
            "error",
            "/dev/nvidiactl has mode 0660 and group 0: nobody but root can use any GPU.",
            *LINES,
        )
    ]


def test_an_access_group_without_members_may_be_a_mistake(machine):
    machine.change("etc/group", f"gpu:x:{GPU_GID}:alice", f"gpu:x:{GPU_GID}:")

    assert machine.complaints() == [
        finding(
            "access_group",
            "unknown",
            "The access group gpu has no members in /etc/group. If none come from a directory "
            "either, nobody can use a GPU.",
            "usermod -aG gpu NAME   # everybody who may use GPUs",
        )
    ]


def test_a_driver_without_nodes_is_an_error(machine):
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        machine.remove(f"dev/{name}")

    assert machine.complaints() == [
        finding(
            "nodes",
            "error",
            "There is no /dev/nvidia0: the driver is loaded, but nothing has created its nodes.",
            "nvidia-smi",
        )
    ]


def capability(machine, path, number, *, modify=1, mode=0o660, wanted=0o444):
    machine.write(
        f"proc/driver/nvidia/capabilities/{path}/access",
        f"DeviceFileMinor: {number}\nDeviceFileMode: {wanted}\nDeviceFileModify: {modify}\n",
    )
    machine.node(f"nvidia-caps/nvidia-cap{number}", mode=mode)


def test_a_mig_instance_that_anybody_can_have_opened_again_is_named_with_the_line_to_write(machine):
    capability(machine, "gpu0/mig/gi1", 12, modify=0)
    capability(machine, "gpu0/mig/gi1/ci0", 13)

    assert machine.complaints() == [
        finding(
            "mig",
            "warning",
            "/dev/nvidia-caps/nvidia-cap13 belongs to a MIG instance, and any user can have it put "
            "back to mode 0444, through nvidia-modprobe. The setting lasts until the next boot or "
            "repartition.",
            'echo "DeviceFileModify: 0" > /proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access',
        )
    ]


def test_mig_capabilities_that_stay_as_they_are_put_are_well(machine):
    capability(machine, "gpu0/mig/gi1", 12, modify=0)
    capability(machine, "gpu0/mig/gi1/ci0", 13, wanted=0o660)

    (told,) = (one for one in machine.examine() if one.id == "mig")

    assert told == finding("mig", "ok", "2 MIG capabilities keep the rights that they are given.")


def test_a_mig_instance_without_a_node_cannot_be_used(machine):
    capability(machine, "gpu0/mig/gi1", 12)
    machine.remove("dev/nvidia-caps/nvidia-cap12")

    assert machine.complaints() == [
        finding(
            "mig",
            "error",
            "/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access has no node below "
            "/dev/nvidia-caps: its MIG instance cannot be used.",
            "nvidia-smi -L",
        )
    ]


def render_node(machine, number, *, vendor="0x10de", **rights):
    machine.write(f"sys/class/drm/renderD{number}/device/vendor", f"{vendor}\n")
    machine.node(f"dri/renderD{number}", **rights)


@pytest.mark.parametrize(
    ("mode", "gid", "who"),
    [(0o666, 0, "everybody"), (0o660, GPU_GID, "group gpu: alice")],
)
def test_a_render_node_that_people_can_open_is_a_door_that_berth_does_not_gate(
    machine, mode, gid, who
):
    render_node(machine, 128, mode=mode, gid=gid)
    render_node(machine, 129, vendor="0x8086", mode=0o666)

    assert machine.complaints() == [
        finding(
            "render_node",
            "warning",
            "/dev/dri/renderD128 leads to a GPU as well, to draw and to encode, and Berth does not "
            f"gate it. It is open to {who}.",
            "chmod 0600 /dev/dri/renderD128   # until udev makes it anew",
        )
    ]


@pytest.mark.parametrize("gid", [0, 105])
def test_a_render_node_of_a_group_without_members_is_closed(machine, gid):
    machine.change("etc/group", "video:x:44:", "video:x:44:\nrender:x:105:")
    render_node(machine, 128, gid=gid)

    (told,) = (one for one in machine.examine() if one.id == "render_node")

    assert told.text == "/dev/dri/renderD128 leads to a GPU as well; it is closed."
