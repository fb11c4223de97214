"""What every gate can do. All of it is safe to repeat."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from reservations.core.enforcement import GateState


class GateError(Exception):
    """A gate could not be set or restored; the text says which node and why."""


class Gate(Protocol):
    """Opens and closes devices. It knows the devices, and their nodes, that it was made for."""

    def observe(self) -> Mapping[str, GateState | None]:
        """Who may open each device now; None where that cannot be read, such as a missing node."""

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
