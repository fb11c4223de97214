"""A device with a display on it is looked at and never touched, unless an operator has forced it."""

import msgspec
import pytest

from reservations.core.wire import DeviceInfo, HostSettings
from workers.host import displays

SETTINGS = HostSettings(mode="enforce", managed=("GPU-desk", "GPU-work"))


def device(uuid: str, *, display: bool | None) -> DeviceInfo:
    return DeviceInfo(uuid=uuid, vendor="nvidia", index=0, model="RTX 4090", display=display)


def managed_with(settings: HostSettings, *devices: DeviceInfo) -> tuple[str, ...]:
    return displays.without(settings, displays.left_alone(settings, devices)).managed


def test_a_device_that_drives_a_display_is_not_managed():
    assert managed_with(
        SETTINGS, device("GPU-desk", display=True), device("GPU-work", display=False)
    ) == ("GPU-work",)


def test_a_display_that_was_forced_is_managed_all_the_same():
    forced = msgspec.structs.replace(SETTINGS, forced_displays=("GPU-desk",))

    assert managed_with(forced, device("GPU-desk", display=True)) == SETTINGS.managed


@pytest.mark.parametrize("display", [False, None])
def test_a_vendor_that_cannot_say_takes_no_device_out(display):
    assert displays.left_alone(SETTINGS, [device("GPU-desk", display=display)]) == ()
    assert displays.without(SETTINGS, ()) is SETTINGS


def test_a_display_that_is_not_managed_anyway_is_no_problem():
    assert displays.left_alone(SETTINGS, [device("GPU-other", display=True)]) == ()


def test_the_problem_names_the_device_and_what_does_not_hold():
    (problem,) = displays.problems([device("GPU-desk", display=True)])

    assert problem.code == "display"
    assert problem.device == "GPU-desk"
    assert problem.text == (
        "RTX 4090 (GPU 0) drives a display: bookings of it are not enforced, until an operator "
        "forces it"
    )
