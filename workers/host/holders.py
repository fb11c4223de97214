"""Who uses which device: open descriptors and the vendor's process lists, each checked by the other.

An open descriptor alone is not use (monitors open every device), and a pid that only the vendor
names is nobody until /proc shows that it has the device open. A list that fails this check for the
most part says nothing at all: the device's holders are then unknown, and nobody is stopped.
"""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from reservations.core.enforcement import Holder, Keeper
from reservations.core.wire import HealthProblem, ProcessUse, Sample
from workers.host.attribution import Attribution
from workers.host.containers import container_of
from workers.host.descriptors import DescriptorScan, held_numbers, held_somewhere, numbers_of
from workers.host.ghosts import Ghosts
from workers.host.processes import Facts, Processes, ancestors, read_facts
from workers.host.protection import Bounds, Place, pid_max, protection, unit_of

logger = logging.getLogger(__name__)

# A full scan at least this often: it finds descriptors that were inherited or passed on.
FULL_SCAN_EVERY = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Target:
    """A device to look at. ``sample`` is its vendor's newest reading, None where there is none.

    ``lists_processes``: whether the vendor can list at all; if not, an open descriptor counts.
    ``trusts_uids``: the list names the person truly, as only a simulated device's does.
    """

    device: str
    node_paths: tuple[str, ...]
    sample: Sample | None
    lists_processes: bool = True
    trusts_uids: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """One instant on the two clocks that are needed to date a process."""

    now: datetime
    boottime_s: float

    def of_ticks(self, start_ticks: int) -> datetime:
        age_s = self.boottime_s - start_ticks / os.sysconf("SC_CLK_TCK")
        return self.now - timedelta(seconds=age_s)


@dataclass(frozen=True, slots=True)
class _Look:
    """One device in one look."""

    target: Target
    numbers: frozenset[int]
    bounds: Bounds
    moment: Moment


class HolderScan:
    """Looks at the devices of one host, tick after tick. For one thread.

    Every holder it returns is kept in ``processes`` by its pidfd, to be signalled through that.
    ``problems`` tell what somebody should know of the last look.
    """

    def __init__(
        self,
        processes: Processes,
        *,
        only_uids: frozenset[int] | None = None,
        attribution: Attribution | None = None,
    ) -> None:
        self._processes = processes
        self._attribution = attribution or Attribution(processes.proc)
        self._own_container = _own_container(processes.proc)
        self._scan = DescriptorScan(processes.proc, only_uids)
        self._full_scan_at: datetime | None = None
        self._ghosts = Ghosts()
        self._may_open: frozenset[int] | None = frozenset()
        self._unreadable: list[str] = []
        self._garbage: dict[str, frozenset[int]] = {}

    @property
    def unreadable(self) -> Sequence[str]:
        """The devices whose process list named mostly nobody."""
        return self._unreadable

    def is_haunted(self, device: str) -> bool:
        """Whether the device computes or keeps memory for nobody who could be found."""
        return self._ghosts.haunts(device)

    def problems(self) -> list[HealthProblem]:
        lists = [_unreadable(device) for device in self._unreadable]
        return [*lists, *self._ghosts.problems(), *self._attribution.problems()]

    def look(
        self, targets: Sequence[Target], *, moment: Moment, may_open: frozenset[int] | None
    ) -> dict[str, tuple[Holder, ...] | None]:
        """The holders of each device; None where they cannot be known now.

        ``may_open``: the uids that any of the gates lets in; None when that may be anybody.
        """
        if self._full_scan_at is None or moment.now - self._full_scan_at >= FULL_SCAN_EVERY:
            self._scan.forget()
            self._full_scan_at = moment.now
        numbers = {target.device: numbers_of(target.node_paths) for target in targets}
        wanted = frozenset[int]().union(*numbers.values())
        open_by_pid = self._scan.find(wanted, may_open=self._worth_repeating(targets, may_open))
        bounds = self._bounds()
        self._unreadable = []
        self._ghosts.begin()
        found = {
            target.device: self._holders(
                _Look(target, numbers[target.device], bounds, moment), open_by_pid
            )
            for target in targets
        }
        self._processes.keep_only(
            holder.pid for holders in found.values() for holder in holders or ()
        )
        self._attribution.settle()
        if self._ghosts.suspected:
            # Perhaps somebody was passed a descriptor since the last full scan.
            self.full_scan()
        return found

    def _worth_repeating(
        self, targets: Sequence[Target], may_open: frozenset[int] | None
    ) -> frozenset[int] | None:
        """Whose processes to go through again in this look; None for everybody's.

        Where the vendor lists those who use a device, that of people who may open it can wait until
        they may no longer, or until the next full scan.
        """
        before, self._may_open = self._may_open, may_open
        if not all(target.lists_processes for target in targets):
            return may_open
        if may_open is None:
            return frozenset()
        if before is None:
            self._scan.forget()
            return frozenset()
        return before - may_open

    def full_scan(self) -> None:
        """Make the next look a full one, as at the end of a slot."""
        self._full_scan_at = None

    def _holders(
        self, look: _Look, open_by_pid: Mapping[int, frozenset[int]]
    ) -> tuple[Holder, ...] | None:
        facts = self._facts(pid for pid, held in open_by_pid.items() if held & look.numbers)
        users = frozenset(facts)
        if look.target.lists_processes:
            listed = self._listed(look, facts)
            if listed is None:
                return None
            facts |= listed
            users = frozenset(listed)
        places = self._places(look.target, facts)
        protected = {pid: protection(facts[pid], look.bounds, places[pid]) for pid in facts}
        stoppable = {pid for pid in facts if protected[pid] is None}
        if self._ghosts.memory_stays(look.target.sample, users, now=look.moment.now):
            users = frozenset(stoppable)
        self._ghosts.look(look.target.sample, users | stoppable, now=look.moment.now)
        above = {pid: ancestors(pid, self._processes.proc) for pid in facts}
        using = with_descendants(users, above, places) - _graphics_only(look.target)
        return tuple(
            msgspec.structs.replace(
                self._holder(facts[pid], places[pid], look),
                ancestors=above[pid],
                uses=pid in using,
                protected=protected[pid],
                keeper=self._keeper(facts[pid], places[pid], look) if pid in stoppable else None,
            )
            for pid in sorted(facts)
        )

    def _holder(self, facts: Facts, place: Place, look: _Look) -> Holder:
        uid = facts.uid if place.person is None else place.person
        return Holder(
            pid=facts.pid,
            uid=uid,
            uids=(uid,) if look.target.trusts_uids else (facts.uid, facts.euid),
            started=look.moment.of_ticks(facts.start_ticks),
            unit=unit_of(facts),
            container=place.container.id if place.container else None,
            booking=place.claim.booking if place.claim else None,
        )

    def _keeper(self, facts: Facts, place: Place, look: _Look) -> Keeper | None:
        return None if look.target.trusts_uids else self._attribution.keeper(facts, place)

    def _facts(self, pids: Iterable[int]) -> dict[int, Facts]:
        looks = ((pid, self._processes.look(pid)) for pid in pids)
        return {pid: facts for pid, facts in looks if facts is not None}

    def _listed(self, look: _Look, held: Mapping[int, Facts]) -> dict[int, Facts] | None:
        """The listed processes that hold the device, or None when there is no list to believe.

        A pid that is not in /proc any more has just ended; one that is there without the device, or
        cannot be a pid, is garbage. ``held``: those already known to hold it.
        """
        target = look.target
        if target.sample is None or target.sample.processes is None:
            return None
        if not look.numbers and not target.trusts_uids:
            # It has no nodes, as one that is divided into instances: nothing of it can be checked.
            return None
        listed: dict[int, Facts] = {}
        garbage: set[int] = set()
        for pid in {process.pid for process in target.sample.processes}:
            if not 1 < pid < look.bounds.pid_max:
                garbage.add(pid)
                continue
            facts = held.get(pid) or self._processes.look(pid)
            if facts is None:
                continue
            if pid in held or target.trusts_uids or self._has_open(pid, look.numbers):
                listed[pid] = facts
            else:
                garbage.add(pid)
        self._note_garbage(target.device, frozenset(garbage))
        if len(garbage) > len(listed):
            self._unreadable.append(target.device)
            return None
        return listed

    def _note_garbage(self, device: str, garbage: frozenset[int]) -> None:
        """Logs it when it is another than before."""
        if garbage and garbage != self._garbage.get(device):
            logger.warning("list of %s names no holders: %s", device, sorted(garbage)[:20])
        self._garbage[device] = garbage

    def _has_open(self, pid: int, numbers: frozenset[int]) -> bool:
        proc = self._processes.proc
        return bool(numbers & held_numbers(pid, proc) or numbers & held_somewhere(pid, proc))

    def _places(self, target: Target, facts: Mapping[int, Facts]) -> dict[int, Place]:
        if not target.trusts_uids:
            return {pid: self._attribution.place(one) for pid, one in facts.items()}
        named = {process.pid: process.uid for process in _processes(target)}
        return {pid: Place(_or(named.get(pid), one.uid)) for pid, one in facts.items()}

    def _bounds(self) -> Bounds:
        own = os.getpid()
        proc = self._processes.proc
        return Bounds(
            own_pids=frozenset({own, *ancestors(own, proc)}),
            pid_max=pid_max(proc),
            own_container=self._own_container,
        )


def with_descendants(
    users: frozenset[int], above: Mapping[int, Sequence[int]], places: Mapping[int, Place]
) -> frozenset[int]:
    """The users, and those holders below one of them that are the same person's or container's.

    Workers of a training job hold the device without a context of their own, and its memory with it.
    """
    return users | {
        pid
        for pid, ancestors_of_pid in above.items()
        if any(up in users and places[up].whose == places[pid].whose for up in ancestors_of_pid)
    }


def _or(uid: int | None, otherwise: int) -> int:
    return otherwise if uid is None else uid


def _own_container(proc: Path) -> str | None:
    """Of the agent itself: it must not end what it lives in."""
    own = read_facts(os.getpid(), proc)
    container = container_of(own.cgroups) if own else None
    return container.id if container else None


def _unreadable(device: str) -> HealthProblem:
    text = (
        "The driver's list of processes names mostly none that use the device: nobody is stopped."
    )
    return HealthProblem(code="process_list", text=text, device=device)


def _graphics_only(target: Target) -> frozenset[int]:
    return frozenset(process.pid for process in _processes(target) if process.graphics_only)


def _processes(target: Target) -> Sequence[ProcessUse]:
    return (target.sample.processes if target.sample else None) or ()
