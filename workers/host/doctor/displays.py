"""Displays on GPUs: what the agent leaves alone, and what an operator has forced."""

from collections.abc import Iterator

from reservations.core.wire import DeviceInfo
from workers.host.doctor.facts import Facts, Finding, ok, warning


def display(facts: Facts) -> Iterator[Finding]:
    plan = facts.setup.plan
    forced = plan.plan.settings.forced_displays if plan else ()
    driving = [device for device in facts.setup.devices if device.display]
    for device in driving:
        yield _forced(device) if device.uuid in forced else _left_alone(device)
    if driving:
        return
    if seen := [*facts.driver.connectors, *facts.driver.display_servers]:
        yield warning(
            "display",
            f"A display is seen on a GPU of this host ({', '.join(seen)}). Where the driver says so "
            "too, the agent leaves that GPU alone.",
            "give the desktop a card of its own",
        )
    else:
        yield ok("display", "No display is seen on a GPU of this host.")


def _left_alone(device: DeviceInfo) -> Finding:
    return warning(
        "display",
        f"{device.model} (GPU {device.index}) drives a display, so the agent leaves it alone: "
        "bookings of it are not enforced.",
        "give the desktop a card of its own, or add the device to `forced_displays` of the host",
    )


def _forced(device: DeviceInfo) -> Finding:
    return warning(
        "display",
        f"{device.model} (GPU {device.index}) drives a display and is enforced all the same, as an "
        "operator has wanted it: while it is closed, no new desktop starts on it.",
    )


CHECKS = (display,)
