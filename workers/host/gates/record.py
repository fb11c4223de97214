"""A gate that remembers and touches nothing: for demos, tests and hosts that only observe."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from reservations.core.enforcement import GateState
from reservations.core.leases import Leases
from workers.host.files import replace_unsynced
from workers.host.gates.base import GateError


class RecordGate:
    """Keeps each device's state in a small file, so that it outlives the agent as a node's ACL would.

    A device that was never set stands open to the access group, as on a host without Berth.
    """

    problem = ""
    # Nobody else writes its file.
    nodes = ()

    def __init__(self, path: Path, devices: Iterable[str] = ()) -> None:
        self._path = path
        self._devices = tuple(devices)

    def observe(self) -> Mapping[str, GateState | None]:
        fresh = dict.fromkeys(self._devices, GateState(group_open=True))
        return {**fresh, **self._read()}

    def disturbed(self) -> bool:
        return False

    def lend(self, leases: Leases, now: datetime) -> None:
        """It has no clock."""

    def set(self, device: str, uids: Iterable[int], *, group_open: bool) -> None:
        state = GateState(uids=frozenset(uids), group_open=group_open)
        self._write({**self._read(), device: state})

    def restore(self, device: str) -> None:
        self._write({name: state for name, state in self._read().items() if name != device})

    def _read(self) -> dict[str, GateState]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, GateState])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise GateError(f"{self._path} cannot be read: {error}") from error

    def _write(self, states: Mapping[str, GateState]) -> None:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Not synced: a node's ACL does not survive a power cut either.
            replace_unsynced(self._path, msgspec.json.encode(states))
        except OSError as error:
            raise GateError(f"{self._path} cannot be written: {error}") from error
