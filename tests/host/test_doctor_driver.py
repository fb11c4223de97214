"""What the doctor says, to the letter. NVIDIA's driver and its parameters."""

import pytest

from tests.host.fake_machine import GPU_GID, LINES, PARAMETERS, finding

# Nodes of root's can be made by root alone.
pytestmark = pytest.mark.root


def test_stock_driver_parameters_let_anybody_open_a_closed_node(machine):
    machine.change(PARAMETERS, "DeviceFileMode: 432", "DeviceFileMode: 438")

    assert machine.complaints() == [
        finding(
            "parameters.mode",
            "error",
            "The driver has NVreg_DeviceFileMode=0666: any user can have a closed node put back to "
            "that, through nvidia-modprobe. It has to be 0660.",
            *LINES,
        )
    ]


def test_a_decimal_660_is_named_as_what_it_is(machine):
    machine.change(PARAMETERS, "DeviceFileMode: 432", "DeviceFileMode: 660")

    assert machine.complaints() == [
        finding(
            "parameters.mode",
            "error",
            "The driver has NVreg_DeviceFileMode=660, a decimal number, which is the mode "
            "c-w--w-r-T. It has to be octal, with a leading zero: 0660.",
            *LINES,
        )
    ]


def test_group_0_closes_the_control_node_to_everybody(machine):
    machine.change(PARAMETERS, f"DeviceFileGID: {GPU_GID}", "DeviceFileGID: 0")

    assert machine.complaints() == [
        finding(
            "parameters.group",
            "error",
            "The driver has NVreg_DeviceFileGID=0: with mode 0660, /dev/nvidiactl is closed to "
            "everybody but root, and nobody can use any GPU. It has to be the group of all who may "
            "use GPUs.",
            *LINES,
        )
    ]


def test_without_an_access_group_the_lines_make_one(machine):
    machine.change(PARAMETERS, f"DeviceFileGID: {GPU_GID}", "DeviceFileGID: 0")
    machine.change("etc/group", f"gpu:x:{GPU_GID}:alice\n", "")

    (complaint,) = machine.complaints()[:1]

    assert complaint.fix[:2] == (
        "groupadd --system gpu",
        'echo "options nvidia NVreg_DeviceFileUID=0 NVreg_DeviceFileGID='
        '$(getent group gpu | cut -d: -f3) NVreg_DeviceFileMode=0660" > /etc/modprobe.d/berth.conf',
    )


def test_a_driver_that_creates_no_nodes_is_an_error(machine):
    machine.change(PARAMETERS, "ModifyDeviceFiles: 1", "ModifyDeviceFiles: 0")

    assert machine.complaints() == [
        finding(
            "parameters.modify",
            "error",
            "The driver has NVreg_ModifyDeviceFiles=0: nothing creates its nodes after a boot, and "
            "no GPU can be used until somebody does.",
            *LINES,
        )
    ]


def test_an_owner_other_than_root_can_always_open_the_nodes(machine):
    machine.change(PARAMETERS, "DeviceFileUID: 0", "DeviceFileUID: 1001")
    machine.node("nvidia1", uid=1001)

    assert machine.complaints() == [
        finding(
            "parameters.owner",
            "error",
            "The driver has NVreg_DeviceFileUID=1001: that user owns every node and can always open "
            "it. It has to be 0.",
            *LINES,
        ),
        finding(
            "nodes",
            "error",
            "/dev/nvidia1 belongs to uid 1001, who can always open it.",
            "chown root /dev/nvidia1",
        ),
    ]


def test_everything_that_is_wrong_with_stock_settings_is_said_at_once(machine):
    machine.change(PARAMETERS, "DeviceFileMode: 432", "DeviceFileMode: 438")
    machine.change(PARAMETERS, f"DeviceFileGID: {GPU_GID}", "DeviceFileGID: 0")
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        machine.node(name, mode=0o666, gid=0)

    complaints = machine.complaints()

    assert [(one.id, one.level) for one in complaints] == [
        ("parameters.mode", "error"),
        ("parameters.group", "error"),
        ("nodes", "error"),
        ("nodes", "warning"),
        ("nodes", "error"),
        ("nodes", "warning"),
    ]
    assert complaints[2] == finding(
        "nodes",
        "error",
        "/dev/nvidia0 has mode 0666: it is open to everybody.",
        "chmod 0660 /dev/nvidia0",
    )
    assert complaints[3] == finding(
        "nodes",
        "warning",
        "/dev/nvidia0 belongs to group 0, not to 990, the access group.",
        "chgrp 990 /dev/nvidia0",
    )


def test_without_driver_and_library_both_are_missed(machine):
    machine.remove(PARAMETERS)
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        machine.remove(f"dev/{name}")
    machine.library_error = "libnvidia-ml.so.1: cannot open shared object file"

    assert machine.complaints() == [
        finding(
            "library",
            "error",
            "NVIDIA's library cannot be loaded, so no device is seen: libnvidia-ml.so.1: cannot "
            "open shared object file.",
            "apt install libnvidia-ml1   # Debian; elsewhere it comes with the driver",
        ),
        finding(
            "driver",
            "error",
            "NVIDIA's driver is not loaded: there is no /proc/driver/nvidia/params.",
            "modprobe nvidia",
        ),
    ]


def test_without_the_persistence_daemon_programs_start_slowly(machine):
    machine.remove("proc/700/comm")

    assert machine.complaints() == [
        finding(
            "persistence",
            "warning",
            "nvidia-persistenced does not run: while nothing uses a device, the driver lets go of "
            "it, and the next program waits for seconds. The agent keeps it from that while it runs.",
            "systemctl enable --now nvidia-persistenced",
        )
    ]
