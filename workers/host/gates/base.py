"""What every gate can do. All of it is safe to repeat."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from reservations.core.enforcement import GateState
from reservations.core.leases import Leases


class GateError(Exception):
    """A gate could not be set or restored; the text says which node and why."""


class Gate(Protocol):
    """Opens and closes devices. It knows the devices, and their nodes, that it was made for."""

    problem: str
    """What it cannot do on this host, in one sentence for operators; empty where all is well."""

    @property
    def nodes(self) -> Sequence[str]:
        """The paths at which somebody else could undo it; none where nobody could."""

    def observe(self) -> Mapping[str, GateState | None]:
        """Who may open each device now; None where that cannot be read, such as a missing node."""

    def disturbed(self) -> bool:
        """Whether a node is not as it was last observed or set. Safe to ask from any thread."""

    def lend(self, leases: Leases, now: datetime) -> None:
        """Until when those who are let in are let in, from here on; it lets nobody in by itself.

        A gate that can close by itself does so then. To be told before each `set`: whoever is set and
        has no lease is let in without an end.

        Raises:
            GateError: It could not be done.
        """

    def set(self, device: str, uids: Iterable[int], *, group_open: bool) -> None:
        """Let exactly these uids open the device, and the access group if ``group_open``.

        Raises:
            GateError: It could not be done; the device may be half set.
        """

    def restore(self, device: str) -> None:
        """Put the device back as it was before it was gated.

        Raises:
            GateError: It could not be done.
        """
