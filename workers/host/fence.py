"""The devices of one tick and the gate that was made for them, so that all of it speaks of the same ones."""

from collections.abc import Callable

from reservations.core.wire import MAX_TEXT, DeviceInfo, HealthProblem
from workers.host.assembly import open_gate
from workers.host.config import Config
from workers.host.fleet import Fleet
from workers.host.gates.base import Gate
from workers.host.gates.watch import NodeWatch


class Fence:
    """``devices`` and ``gate`` change in `follow` alone."""

    def __init__(self, config: Config, fleet: Fleet, *, on_disturbed: Callable[[], None]) -> None:
        self._config = config
        self._fleet = fleet
        self._nodes = NodeWatch(on_disturbed=on_disturbed)
        self.devices: tuple[DeviceInfo, ...] = fleet.devices
        self.gate: Gate = open_gate(config, fleet.devices)

    def start(self) -> None:
        """From now on somebody else's change of a node is heard of at once."""
        self._nodes.start()

    def stop(self) -> None:
        self._nodes.stop()

    def follow(self) -> None:
        """Once a tick: what the fleet has found since."""
        if self.devices is not self._fleet.devices:
            self.devices = self._fleet.devices
            self.gate = open_gate(self._config, self.devices)
        self._nodes.follow(self.gate)

    @property
    def divided(self) -> tuple[DeviceInfo, ...]:
        """Those whose parts are gated in their place."""
        return tuple(one for one in self.devices if one.divided)

    def problems(self) -> list[HealthProblem]:
        troubles = (("gate", self.gate.problem), ("nodes_unwatched", self._nodes.problem))
        return [HealthProblem(code=code, text=text[:MAX_TEXT]) for code, text in troubles if text]
