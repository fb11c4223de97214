"""What a test may need of the machine. What is missing is skipped with its reason, and counted.

`BERTH_EXPECT="root compiler chromium bpf"` names what must be there: then a test that lacks it fails.
"""

import functools
import os
import shutil
from collections.abc import Callable

import pytest


@functools.cache
def _keeps_leases() -> bool:
    """Whether the kernel takes the program of the gate `bpf`, on a control group made for the question."""
    from tests.host.gates import control_group
    from workers.host.gates.lease_table import LeaseTable, Unavailable

    try:
        with control_group("asked") as group:
            LeaseTable([group]).attach()
    except (OSError, Unavailable):
        return False
    return True


# by marker: the capability's name, how to see it, and what to say
_NEEDS: dict[str, tuple[str, Callable[[], bool]]] = {
    "root": ("root", lambda: os.geteuid() == 0),
    "compiler": ("compiler", lambda: shutil.which("cc") is not None),
    "browser": (
        "chromium",
        lambda: any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    ),
    "bpf": ("bpf", _keeps_leases),
    "gpu": ("gpu", lambda: os.path.exists("/dev/nvidiactl")),
}


def require(item: pytest.Item) -> None:
    """Skip the test, or fail it, for want of a capability that its marker names."""
    expected = os.environ.get("BERTH_EXPECT", "").split()
    for marker, (capability, present) in _NEEDS.items():
        if item.get_closest_marker(marker) and not present():
            if capability in expected:
                pytest.fail(
                    f"{capability} was promised (BERTH_EXPECT) and is not here", pytrace=False
                )
            pytest.skip(f"needs {capability}")
