"""One look at the whole host: gates first, then who holds what. Decides nothing, changes nothing."""

import logging
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from reservations.core.enforcement import DeviceState, GateState, Holder
from reservations.core.wire import MAX_TEXT, DeviceInfo, HealthProblem, ProcessUse, Sample
from workers.host.clock import HostClock
from workers.host.gates.base import Gate, GateError
from workers.host.holders import HolderScan, Moment, Target
from workers.host.names import Names
from workers.host.processes import Processes, read_facts
from workers.host.readings import Readings
from workers.host.room import NoRoomError
from workers.host.vendors.base import Vendor

logger = logging.getLogger(__name__)

# What a tick waits for readings. A slower device is unknown in this tick; the others are not held up.
TICK_WAIT_S = 0.25


class Sight(msgspec.Struct, frozen=True, kw_only=True):
    """What one look saw. ``samples`` hold the newest reading of each device, people named."""

    observed: Mapping[str, DeviceState]
    samples: Mapping[str, Sample]


class Lookout:
    """For one thread, the agent's."""

    def __init__(
        self,
        *,
        vendor: Vendor,
        readings: Readings,
        processes: Processes,
        names: Names,
        clock: HostClock,
        scan: HolderScan,
    ) -> None:
        self._vendor = vendor
        self._readings = readings
        self._processes = processes
        self._names = names
        self._clock = clock
        self._scan = scan
        self._no_room = ""

    def look(
        self, devices: Sequence[DeviceInfo], gate: Gate, *, full: bool, read: bool = True
    ) -> Sight:
        """``full``: every process is examined again, as at the end of a slot.

        Without ``read`` the vendor is asked nothing: what it alone can say is unknown.
        """
        gates = _gates(gate)
        uuids = [device.uuid for device in devices]
        fresh = self._readings.take(uuids, wait_s=TICK_WAIT_S) if read else self._unread(uuids)
        if full:
            self._scan.full_scan()
        holders = self._holders(devices, fresh, may_open=_may_open(gates, devices))
        return Sight(
            observed={
                device.uuid: DeviceState(gate=gates.get(device.uuid), holders=holders[device.uuid])
                for device in devices
            },
            samples={
                device.uuid: self._named(
                    self._readings.newest(device.uuid) if read else fresh[device.uuid],
                    holders[device.uuid] or (),
                )
                for device in devices
            },
        )

    def problems(self) -> list[HealthProblem]:
        """What somebody should know of the last look."""
        no_room = [HealthProblem(code="no_room", text=self._no_room)] if self._no_room else []
        return [*no_room, *self._scan.problems(), *self._vendor.problems()]

    def _holders(
        self,
        devices: Sequence[DeviceInfo],
        fresh: Mapping[str, Sample],
        *,
        may_open: frozenset[int] | None,
    ) -> Mapping[str, tuple[Holder, ...] | None]:
        """Unknown where there is no room to look: gates go on, and nobody is stopped."""
        try:
            found = self._scan.look(
                [self._target(device, fresh[device.uuid]) for device in devices],
                moment=Moment(now=self._clock.now(), boottime_s=self._clock.boottime_s()),
                may_open=may_open,
            )
        except NoRoomError as error:
            logger.error("processes cannot be looked at: %s", error)  # noqa: TRY400
            self._no_room = f"The processes of this host cannot be looked at: {error}"[:MAX_TEXT]
            return {device.uuid: None for device in devices}
        self._no_room = ""
        return found

    def _unread(self, uuids: Iterable[str]) -> dict[str, Sample]:
        now = self._clock.now()
        return {uuid: Sample(uuid=uuid, at=now, health="unknown") for uuid in uuids}

    def _target(self, device: DeviceInfo, sample: Sample) -> Target:
        return Target(
            device=device.uuid,
            node_paths=device.node_paths,
            sample=sample,
            lists_processes=self._vendor.lists_processes,
            trusts_uids=self._vendor.trusts_uids,
        )

    def _named(self, sample: Sample, holders: Sequence[Holder]) -> Sample:
        """The same reading with a person to each process, as far as one is known.

        A list that cannot be believed is shown as unreadable.
        """
        if self._scan.is_haunted(sample.uuid):
            sample = msgspec.structs.replace(sample, haunted=True)
        if not sample.processes:
            return sample
        if sample.uuid in self._scan.unreadable:
            return msgspec.structs.replace(sample, processes=None)
        known = {holder.pid: holder for holder in holders}
        named = tuple(self._name(process, known.get(process.pid)) for process in sample.processes)
        return msgspec.structs.replace(sample, processes=named)

    def _name(self, process: ProcessUse, holder: Holder | None) -> ProcessUse:
        if holder is not None:
            process = msgspec.structs.replace(
                process,
                uid=holder.uid if process.uid is None else process.uid,
                started=holder.started,
                container=holder.container,
                protected=holder.protected,
            )
        uid = process.uid
        if uid is None and (facts := read_facts(process.pid, self._processes.proc)):
            uid = facts.uid
        name = process.unix_name or (self._names.name_of(uid) if uid is not None else None)
        return msgspec.structs.replace(process, uid=uid, unix_name=name)


def _gates(gate: Gate) -> Mapping[str, GateState | None]:
    try:
        return gate.observe()
    except (GateError, OSError) as error:
        logger.error("gates cannot be read: %s", error)  # noqa: TRY400 -- the text says it all
        return {}


def _may_open(
    gates: Mapping[str, GateState | None], devices: Sequence[DeviceInfo]
) -> frozenset[int] | None:
    states = [gates.get(device.uuid) for device in devices]
    uids: set[int] = set()
    for state in states:
        if state is None or state.group_open:
            return None
        uids |= state.uids
    return frozenset(uids)
