"""What one look found: for each managed device, who has a right to it, and who is on it without one.

A process is its person's, by uid; in a container that was started for a booking of the plan it is that
booking's people's, whatever its uid; in any other container it is nobody's.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from reservations.core.enforcement import (
    DeviceState,
    GateMark,
    Holder,
    HostGrant,
    Ladder,
    Observed,
    Party,
    PlanState,
    Rung,
)
from reservations.core.rights import Rights, rights
from reservations.core.wire import HostSettings


@dataclass(frozen=True, slots=True)
class World:
    """What is the same for every device in one look. ``members``: who each booking is for."""

    grants: Sequence[HostGrant]
    observed: Observed
    ladder: Ladder
    now: datetime
    settings: HostSettings
    plan: PlanState
    members: Mapping[int, frozenset[int]]

    def spares(self, holder: Holder) -> bool:
        """Whether it is never stopped and never in the way, because of who it is."""
        # Root is protected as what it is, not by these lists.
        spared = {*self.settings.exempt_uids, *self.settings.always_open_uids} - {0}
        return holder.protected is not None or not spared.isdisjoint(self.people_behind(holder))

    def people_behind(self, holder: Holder) -> frozenset[int]:
        """Any of these may have the right that the process needs."""
        return self._members_of(holder) or frozenset((holder.uid, *holder.uids))

    def party_of(self, holder: Holder) -> Party:
        """With whom it is led off a device."""
        members = self._members_of(holder)
        if not members:
            return Party(holder.uid, holder.container)
        return Party(holder.uid if holder.uid in members else min(members))

    def _members_of(self, holder: Holder) -> frozenset[int]:
        # A booking that the plan does not know says nothing.
        return self.members.get(holder.booking or 0, frozenset())


@dataclass(frozen=True, slots=True)
class Device:
    """One managed device. ``foreign`` is None where the holders could not be read.

    ``tolerates_containers``: those of nobody are neither stopped nor waited for.
    """

    rights: Rights
    state: DeviceState
    rungs: Mapping[Party, Rung]
    mark: GateMark | None
    foreign: Mapping[Party, tuple[Holder, ...]] | None
    present: frozenset[Party]
    tolerates_containers: bool

    @property
    def in_the_way(self) -> frozenset[Party]:
        """Who has to leave before somebody new is let in.

        Where that cannot be read: whoever was on it at the last look has not been seen to leave.
        """
        there = self.rungs if self.foreign is None else self.foreign
        return frozenset(p for p in there if not (p.container and self.tolerates_containers))


def members_of(grants: Sequence[HostGrant], observed: Observed) -> dict[int, frozenset[int]]:
    """The people of each booking that any process found is claimed for."""
    claimed = {holder.booking for state in observed.values() for holder in state.holders or ()}
    members: defaultdict[int, set[int]] = defaultdict(set)
    for grant in grants:
        if grant.booking is not None and grant.booking in claimed:
            members[grant.booking].add(grant.uid)
    return {booking: frozenset(uids) for booking, uids in members.items()}


def looked_at(world: World, device: str) -> Device:
    """What this look found on one device."""
    state = world.observed[device]
    due = rights(world.grants, device, settings=world.settings, now=world.now)
    rungs = {rung.party: rung for rung in world.ladder.rungs if rung.device == device}
    present: set[Party] = set()
    foreign: defaultdict[Party, tuple[Holder, ...]] = defaultdict(tuple)
    for holder in state.holders or ():
        party = world.party_of(holder)
        if holder.protected is not None or not (
            holder.uses or _was_in_use(rungs.get(party), holder)
        ):
            continue
        present.add(party)
        if not world.spares(holder) and not due.cover(world.people_behind(holder)):
            foreign[party] = (*foreign[party], holder)
    return Device(
        rights=due,
        state=state,
        rungs=rungs,
        mark=next((mark for mark in world.ladder.gates if mark.device == device), None),
        foreign=None if state.holders is None else dict(foreign),
        present=frozenset(present),
        tolerates_containers=_tolerates_containers(due, world.settings),
    )


def _was_in_use(rung: Rung | None, holder: Holder) -> bool:
    """Whether it was when its person was signalled: workers outlive the process that is listed."""
    return rung is not None and rung.signalled_at is not None and holder.pid in rung.pids


def _tolerates_containers(due: Rights, settings: HostSettings) -> bool:
    return settings.unattributed_containers == "report" or not due.honoured
