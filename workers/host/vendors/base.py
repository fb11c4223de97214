"""What a vendor file offers: the devices of one make, and readings of them.

A vendor reads and never acts. It may block (a driver can hang): `workers.host.readings` gives each
device a thread and a deadline, so a vendor file is plain synchronous code.
"""

from typing import ClassVar, Protocol

from reservations.core.wire import DeviceInfo, HealthProblem, Sample


class VendorError(RuntimeError):
    """The vendor's library cannot be used now; the text says why. Devices are unknown, not gone."""


class Vendor(Protocol):
    """One make of device. `sample` of different devices may run at the same time.

    `lists_processes` says whether `Sample.processes` is filled by this make at all; where it is not,
    an open descriptor counts as use. `trusts_uids`: its processes are of this very machine and name their
    person truly, as only simulated devices' do.
    """

    name: ClassVar[str]
    lists_processes: ClassVar[bool]
    trusts_uids: ClassVar[bool]

    def devices(self) -> tuple[DeviceInfo, ...]:
        """Every device that is there now, by index.

        Raises:
            VendorError: none can be named now.
        """

    def sample(self, uuid: str) -> Sample:
        """One reading. A fault of the device is in `health`, never raised; `None` is unavailable."""

    def problems(self) -> list[HealthProblem]:
        """What somebody should know of the devices. Never blocks: it asks the driver nothing."""

    def close(self) -> None:
        """Lets go of every handle."""
