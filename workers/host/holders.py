"""Who uses which device: open descriptors and the vendor's process lists, each checked by the other.

An open descriptor alone is not use (monitors open every device), and a pid that only the vendor
names is nobody until /proc shows that it has the device open. A list that fails this check for the
most part says nothing at all: the device's holders are then unknown, and nobody is stopped.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reservations.core.enforcement import Holder
from reservations.core.wire import ProcessUse, Sample
from workers.host.descriptors import DescriptorScan, held_numbers, numbers_of
from workers.host.processes import Facts, Processes, ancestors
from workers.host.protection import Bounds, person_of, pid_max, protection, unit_of

# A full scan at least this often: it finds descriptors that were inherited or passed on.
FULL_SCAN_EVERY = timedelta(seconds=60)
# Memory that nobody on the list holds is somebody's when there is this much of it ...
ORPHANED_BYTES = 512 * 2**20
# ... or this much, where the vendor counts the driver's own share as used ...
ORPHANED_BYTES_WITH_RESERVE = 2 * 2**30
# ... and it is still there after this long: drivers take a moment to free it.
ORPHANED_AFTER = timedelta(seconds=5)


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


class HolderScan:
    """Looks at the devices of one host, tick after tick. For one thread.

    Every holder it returns is kept in ``processes`` by its pidfd, to be signalled through that.
    """

    def __init__(self, processes: Processes, *, only_uids: frozenset[int] | None = None) -> None:
        self._processes = processes
        self._scan = DescriptorScan(processes.proc, only_uids)
        self._full_scan_at: datetime | None = None
        self._unclaimed_since: dict[str, datetime] = {}
        self._lax = False

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
        found = {
            target.device: self._holders(
                target, numbers[target.device], open_by_pid, bounds=bounds, moment=moment
            )
            for target in targets
        }
        self._processes.keep_only(
            holder.pid for holders in found.values() for holder in holders or ()
        )
        return found

    def _worth_repeating(
        self, targets: Sequence[Target], may_open: frozenset[int] | None
    ) -> frozenset[int] | None:
        """Whose processes to go through again in this look; None for everybody's.

        While a device is open to the access group that would be all, every time. Where the vendor
        lists those who use it that may wait for the next full scan, at the latest when it closes.
        """
        if may_open is None and all(target.lists_processes for target in targets):
            self._lax = True
            return frozenset()
        if self._lax:
            self._lax = False
            self._scan.forget()
        return may_open

    def full_scan(self) -> None:
        """Make the next look a full one, as at the end of a slot."""
        self._full_scan_at = None

    def _holders(
        self,
        target: Target,
        numbers: frozenset[int],
        open_by_pid: Mapping[int, frozenset[int]],
        *,
        bounds: Bounds,
        moment: Moment,
    ) -> tuple[Holder, ...] | None:
        facts = self._facts(pid for pid, held in open_by_pid.items() if held & numbers)
        if not target.lists_processes:
            users = frozenset(facts)
        else:
            listed = self._listed(target, numbers, bounds)
            if listed is None:
                return None
            facts |= self._facts(listed - facts.keys())
            users = frozenset(listed & facts.keys())
            if self._memory_is_orphaned(target, users, moment.now):
                users = frozenset(facts)
        above = {pid: ancestors(pid, self._processes.proc) for pid in facts}
        people = _people(target, facts)
        using = with_descendants(users, above, people)
        drawing = _graphics_only(target)
        return tuple(
            Holder(
                pid=pid,
                uid=people[pid],
                uids=(people[pid],) if target.trusts_uids else (one.uid, one.euid),
                started=moment.of_ticks(one.start_ticks),
                ancestors=above[pid],
                uses=pid in using and pid not in drawing,
                protected=_protection(one, people[pid], target=target, bounds=bounds),
                unit=unit_of(one),
            )
            for pid, one in sorted(facts.items())
        )

    def _facts(self, pids: Iterable[int]) -> dict[int, Facts]:
        looks = ((pid, self._processes.look(pid)) for pid in pids)
        return {pid: facts for pid, facts in looks if facts is not None}

    def _listed(
        self, target: Target, numbers: frozenset[int], bounds: Bounds
    ) -> frozenset[int] | None:
        """The listed pids that hold the device, or None when there is no list to believe.

        A pid that is not in /proc any more has just ended; one that is there without the device, or
        cannot be a pid, is garbage.
        """
        if target.sample is None or target.sample.processes is None:
            return None
        holding, garbage = set(), 0
        for pid in {process.pid for process in target.sample.processes}:
            if not 1 < pid < bounds.pid_max:
                garbage += 1
            elif self._processes.look(pid) is None:
                continue
            elif target.trusts_uids or numbers & held_numbers(pid, self._processes.proc):
                holding.add(pid)
            else:
                garbage += 1
        return None if garbage > len(holding) else frozenset(holding)

    def _memory_is_orphaned(self, target: Target, users: frozenset[int], now: datetime) -> bool:
        """Whether memory stays occupied though no listed process is left to hold it."""
        if users or not _holds_memory(target.sample):
            self._unclaimed_since.pop(target.device, None)
            return False
        since = self._unclaimed_since.setdefault(target.device, now)
        return now - since >= ORPHANED_AFTER

    def _bounds(self) -> Bounds:
        own = os.getpid()
        proc = self._processes.proc
        return Bounds(own_pids=frozenset({own, *ancestors(own, proc)}), pid_max=pid_max(proc))


def with_descendants(
    users: frozenset[int], above: Mapping[int, Sequence[int]], people: Mapping[int, int]
) -> frozenset[int]:
    """The users, and those holders below one of them that are the same person's.

    Workers of a training job hold the device without a context of their own, and its memory with it.
    """
    return users | {
        pid
        for pid, ancestors_of_pid in above.items()
        if any(up in users and people[up] == people[pid] for up in ancestors_of_pid)
    }


def _people(target: Target, facts: Mapping[int, Facts]) -> dict[int, int]:
    people = {pid: person_of(one) for pid, one in facts.items()}
    if target.trusts_uids:
        people |= {
            process.pid: process.uid
            for process in _processes(target)
            if process.uid is not None and process.pid in people
        }
    return people


def _protection(facts: Facts, person: int, *, target: Target, bounds: Bounds) -> str | None:
    if target.trusts_uids:
        facts = replace(facts, uid=person, euid=person, cgroups=())
    return protection(facts, bounds)


def _graphics_only(target: Target) -> frozenset[int]:
    return frozenset(process.pid for process in _processes(target) if process.graphics_only)


def _processes(target: Target) -> Sequence[ProcessUse]:
    return (target.sample.processes if target.sample else None) or ()


def _holds_memory(sample: Sample | None) -> bool:
    if sample is None or sample.memory_used_bytes is None:
        return False
    counts_reserve = sample.memory_reserved_bytes is None
    limit = ORPHANED_BYTES_WITH_RESERVE if counts_reserve else ORPHANED_BYTES
    return sample.memory_used_bytes > limit
