"""Leases that the kernel itself lets run out, on top of the access control lists.

The lists say who; the kernel's table says until when, and goes on to say it when the agent is dead. It also
refuses at a node that somebody has opened with chmod, and at another node of the same number.
It holds the processes below its control groups; for all others the lists stand alone.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from reservations.core.enforcement import GateState
from reservations.core.leases import Leases
from workers.host.descriptors import numbers_of
from workers.host.gates.acl import AclGate
from workers.host.gates.base import GateError
from workers.host.gates.lease_program import ANYBODY, FOR_EVER
from workers.host.gates.lease_table import Key, LeaseTable

# An end that is worked out anew at every look differs by less; it is not written again for that.
_SAME_NS = 1_000_000


class BpfGate:
    """An `AclGate` whose grants have an end in the kernel."""

    problem = ""

    def __init__(self, acl: AclGate, table: LeaseTable) -> None:
        """Starts with what an earlier agent left in the kernel.

        Raises:
            OSError: The kernel refuses.
        """
        self._acl = acl
        self._table = table
        self._until_ns: Mapping[tuple[str, int], int] = {}
        self._take_over()

    @property
    def nodes(self) -> Sequence[str]:
        return self._acl.nodes

    def disturbed(self) -> bool:
        return self._acl.disturbed()

    def observe(self) -> Mapping[str, GateState | None]:
        states = self._acl.observe()
        standing, stands = self._table.read(), self._table.stands()
        return {
            device: state
            and msgspec.structs.replace(
                state, sound=state.sound and stands and self._agrees(device, state, standing)
            )
            for device, state in states.items()
        }

    def lend(self, leases: Leases, now: datetime) -> None:
        started_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        self._until_ns = {who: _until_ns(started_ns, end - now) for who, end in leases.items()}
        try:
            standing = self._table.read()
            if standing:
                self._table.attach_to_new()
            self._table.write(self._moved(standing))
        except OSError as error:
            raise GateError(f"leases cannot be moved: {error.strerror}") from error

    def set(self, device: str, uids: Iterable[int], *, group_open: bool) -> None:
        self._acl.set(device, uids := frozenset(uids), group_open=group_open)
        try:
            numbers = self._numbers(device)
            wanted = {
                (uid, number): self._until_ns.get((device, uid), FOR_EVER)
                for number in numbers
                for uid in uids - {0}
            }
            wanted |= {(ANYBODY, number): FOR_EVER if group_open else 0 for number in numbers}
            self._table.write(wanted)
            self._table.remove(_of(numbers, self._table.read()) - wanted.keys())
            self._table.attach()
        except OSError as error:
            raise GateError(f"the kernel does not keep the lease: {error.strerror}") from error

    def restore(self, device: str) -> None:
        try:
            self._table.remove(_of(self._numbers(device), self._table.read()))
            if not self._table.read():
                self._table.detach()
        except OSError as error:
            raise GateError(f"the lease cannot be taken back: {error.strerror}") from error
        self._acl.restore(device)

    def _take_over(self) -> None:
        """What the lists say already counts from the start; numbers that no device has any more do not."""
        standing = self._table.read()
        known: set[int] = set()
        for device, state in self._acl.observe().items():
            numbers = self._numbers(device)
            known |= numbers
            if state and state.sound:
                fresh = [number for number in numbers if (ANYBODY, number) not in standing]
                self._table.write({(uid, one): FOR_EVER for one in fresh for uid in state.uids})
                shut = FOR_EVER if state.group_open else 0
                self._table.write({(ANYBODY, one): shut for one in fresh})
        if known:
            self._table.remove(key for key in standing if key[1] not in known)

    def _moved(self, standing: Mapping[Key, int]) -> dict[Key, int]:
        """The leases of people who are let in, where they end at another instant than written."""
        device_of = {
            number: device for device in self._acl.devices for number in self._numbers(device)
        }
        moved: dict[Key, int] = {}
        for (uid, number), written_ns in standing.items():
            until_ns = self._until_ns.get((device_of.get(number, ""), uid), written_ns)
            if abs(until_ns - written_ns) > _SAME_NS:
                moved[uid, number] = until_ns
        return moved

    def _agrees(self, device: str, state: GateState, standing: Mapping[Key, int]) -> bool:
        """Whether the table has the same people. A lease that has run out is ours to take away yet."""
        return all(
            {uid for uid, _ in _of([number], standing) if uid != ANYBODY} == state.uids
            and (ANYBODY, number) in standing
            and bool(standing[ANYBODY, number]) == state.group_open
            for number in self._numbers(device)
        )

    def _numbers(self, device: str) -> frozenset[int]:
        return numbers_of(self._acl.paths(device))


def _of(numbers: Iterable[int], standing: Mapping[Key, int]) -> set[Key]:
    among = frozenset(numbers)
    return {key for key in standing if key[1] in among}


def _until_ns(started_ns: int, rest: timedelta) -> int:
    return max(0, min(started_ns + rest // timedelta(microseconds=1) * 1000, FOR_EVER))
