"""What the doctor says, to the letter. Displays."""

import msgspec
import pytest

from reservations.core.wire import DeviceInfo
from tests.host.fake_machine import finding

# Nodes of root's can be made by root alone.
pytestmark = pytest.mark.root


def test_a_display_on_an_nvidia_card_is_told_with_who_drives_it(machine):
    for card, vendor in (("card0", "0x10de"), ("card1", "0x8086")):
        machine.write(f"sys/class/drm/{card}/device/vendor", f"{vendor}\n")
        machine.write(f"sys/class/drm/{card}-HDMI-A-1/status", "connected\n")
        machine.write(f"sys/class/drm/{card}-DP-1/status", "disconnected\n")
    machine.write("proc/812/comm", "Xorg\n")
    machine.link("proc/812/fd/7", "/dev/nvidia0")
    machine.write("proc/813/comm", "Xorg\n")
    machine.link("proc/813/fd/7", "/dev/dri/card1")

    assert machine.complaints() == [
        finding(
            "display",
            "warning",
            "A display is seen on a GPU of this host (card0-HDMI-A-1, Xorg (pid 812)). Where the "
            "driver says so too, the agent leaves that GPU alone.",
            "give the desktop a card of its own",
        )
    ]


DESK = DeviceInfo(uuid="GPU-desk", vendor="nvidia", index=1, model="RTX 4090", display=True)


def test_a_device_that_drives_a_display_is_told_to_be_left_alone(machine):
    machine.devices(DESK, msgspec.structs.replace(DESK, uuid="GPU-work", index=0, display=False))

    assert machine.complaints() == [
        finding(
            "display",
            "warning",
            "RTX 4090 (GPU 1) drives a display, so the agent leaves it alone: bookings of it are "
            "not enforced.",
            "give the desktop a card of its own, or add the device to `forced_displays` of the host",
        )
    ]


def test_a_display_that_an_operator_has_forced_is_told_with_what_follows(machine):
    machine.devices(DESK)
    machine.plan(forced_displays=("GPU-desk",))

    assert machine.complaints() == [
        finding(
            "display",
            "warning",
            "RTX 4090 (GPU 1) drives a display and is enforced all the same, as an operator has "
            "wanted it: while it is closed, no new desktop starts on it.",
        )
    ]
