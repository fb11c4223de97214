"""Compare what a host should allow with what it does allow.

Level-triggered: the answer depends on the two states and the clock alone, never on what woke us.
Gates close before anybody is signalled, ends come before starts, and doubt stops nobody.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from reservations.core import early, eviction
from reservations.core.enforcement import (
    Action,
    Decision,
    DeviceState,
    Fact,
    GateMark,
    GateState,
    Holder,
    HostGrant,
    Ladder,
    Observed,
    PlanState,
    RestoreGate,
    Rung,
    SetGate,
    Tell,
)
from reservations.core.eviction import Case
from reservations.core.gating import GateCase, gate_step, opened
from reservations.core.rights import Rights, rights
from reservations.core.wire import HostSettings

# A signalled process that obeys is gone within moments: do not let the next person wait a second.
LOOK_AFTER_SIGNAL = timedelta(seconds=0.1)


@dataclass(frozen=True, slots=True)
class _World:
    """What is the same for every device in one look."""

    grants: Sequence[HostGrant]
    observed: Observed
    ladder: Ladder
    now: datetime
    settings: HostSettings
    plan: PlanState

    @property
    def spared(self) -> frozenset[int]:
        """Never stopped and never in the way. Root is protected by who it is, not by this list."""
        return frozenset((*self.settings.exempt_uids, *self.settings.always_open_uids)) - {0}


@dataclass(frozen=True, slots=True)
class _Device:
    """One managed device: who has a right to it, and who is on it without one, by uid.

    ``foreign`` is None where the holders could not be read.
    """

    rights: Rights
    state: DeviceState
    rungs: Mapping[int, Rung]
    mark: GateMark | None
    foreign: Mapping[int, tuple[Holder, ...]] | None
    present: frozenset[int]


def plan_actions(
    grants: Sequence[HostGrant],
    observed: Observed,
    *,
    ladder: Ladder,
    now: datetime,
    settings: HostSettings,
    plan: PlanState,
) -> Decision:
    """What brings ``observed`` to what ``grants`` say at ``now``.

    ``grants`` include those that ended within the last 24 h: they tell an overrun from an intruder.
    Do the actions in order, spool each one's facts once it is done, then store the ladder.
    """
    if plan.complete_until is not None and now >= plan.complete_until:
        return Decision(ladder=ladder)
    settings = _settings_to_act_on(settings, ladder, plan)
    ladder = _with_switch(ladder, settings, now)
    world = _World(grants, observed, ladder, now, settings, plan)
    devices = [
        _looked_at(world, device) for device in sorted(set(settings.managed) & observed.keys())
    ]
    farewells = [action for device in devices for action in _farewells(device)]
    restored, ladder = _restore_gates(ladder, settings)
    gated, ladder = _move_gates(world, ladder, devices)
    signalled, ladder = _signal_early(world, ladder, devices)
    evicted, ladder = _move_people(world, ladder, devices)
    return Decision(
        actions=(*farewells, *restored, *gated, *signalled, *evicted),
        ladder=ladder,
        look_again=any(isinstance(action, SetGate) for action in gated),
    )


def next_edge(
    grants: Sequence[HostGrant], *, ladder: Ladder, settings: HostSettings, now: datetime
) -> datetime | None:
    """The first instant after ``now`` at which the answer may change by time alone."""
    edges = [edge for grant in grants for edge in (grant.start, grant.end)]
    edges += [early.due_at(grant) for grant in grants if grant.early_signal]
    if settings.unbooked_use == "allow":
        edges += [grant.start - eviction.WALK_UP_NOTICE for grant in grants]
    for rung in ladder.rungs:
        edges += eviction.next_due(rung, settings)
        last = rung.last_pass_at or rung.signalled_at
        if last is not None:
            edges.append(last + LOOK_AFTER_SIGNAL)
    if ladder.enforcing_since is not None:
        edges.append(ladder.enforcing_since + timedelta(hours=settings.adopt_h))
    return min((edge for edge in edges if edge > now), default=None)


def _settings_to_act_on(settings: HostSettings, ladder: Ladder, plan: PlanState) -> HostSettings:
    """Without any plan the devices that were gated stay managed: their gates close."""
    if plan.as_of is not None:
        return settings
    gated = tuple(mark.device for mark in ladder.gates)
    return msgspec.structs.replace(settings, mode="enforce", unbooked_use="deny", managed=gated)


def _with_switch(ladder: Ladder, settings: HostSettings, now: datetime) -> Ladder:
    """Remember since when the host enforces: older processes are adopted."""
    since = (ladder.enforcing_since or now) if settings.mode == "enforce" else None
    return msgspec.structs.replace(ladder, enforcing_since=since)


def _looked_at(world: _World, device: str) -> _Device:
    state = world.observed[device]
    due = rights(world.grants, device, settings=world.settings, now=world.now)
    rungs = {rung.uid: rung for rung in world.ladder.rungs if rung.device == device}
    using = [
        holder
        for holder in state.holders or ()
        if holder.protected is None and (holder.uses or _known_to(rungs, holder))
    ]
    foreign: dict[int, tuple[Holder, ...]] = {}
    for holder in using:
        if not due.cover(holder) and world.spared.isdisjoint((holder.uid, *holder.uids)):
            foreign[holder.uid] = (*foreign.get(holder.uid, ()), holder)
    return _Device(
        rights=due,
        state=state,
        rungs=rungs,
        mark=next((mark for mark in world.ladder.gates if mark.device == device), None),
        foreign=None if state.holders is None else foreign,
        present=frozenset(holder.uid for holder in using),
    )


def _known_to(rungs: Mapping[int, Rung], holder: Holder) -> bool:
    """Whether it was in use when its person was signalled: workers outlive the process listed."""
    rung = rungs.get(holder.uid)
    return rung is not None and rung.signalled_at is not None and holder.pid in rung.pids


def _restore_gates(ladder: Ladder, settings: HostSettings) -> tuple[list[Action], Ladder]:
    """Give back the nodes of devices that are gated no more."""
    gated = set(settings.managed) if settings.mode == "enforce" else set()
    leaving = [mark for mark in ladder.gates if mark.device not in gated]
    kept = tuple(mark for mark in ladder.gates if mark.device in gated)
    actions: list[Action] = [RestoreGate(device=mark.device) for mark in leaving]
    return actions, msgspec.structs.replace(ladder, gates=kept)


def _move_gates(
    world: _World, ladder: Ladder, devices: Iterable[_Device]
) -> tuple[list[Action], Ladder]:
    """Set the gates that differ, those that close before those that open."""
    if world.settings.mode != "enforce":
        return [], msgspec.structs.replace(ladder, told=frozenset())
    actions: list[Action] = []
    marks = {mark.device: mark for mark in ladder.gates}
    # What was told of a running grant is not told again because its device could not be read once.
    running = [grant for grant in world.grants if grant.start <= world.now < grant.end]
    told = ladder.told & {opened(grant).id for grant in running}
    for device in devices:
        if device.state.gate is None:
            continue
        case = _gate_case(world, device, device.state.gate)
        steps, once = gate_step(case, told=ladder.told, now=world.now)
        actions += steps
        told |= {fact.id for fact in once}
        marks[device.rights.device] = GateMark(device=device.rights.device, state=case.wanted)
    actions.sort(key=lambda action: _closes_nothing(action, world.observed))
    gates = tuple(marks[name] for name in sorted(marks))
    return actions, msgspec.structs.replace(ladder, gates=gates, told=told)


def _gate_case(world: _World, device: _Device, observed: GateState) -> GateCase:
    stuck = (rung for rung in device.rungs.values() if rung.stuck_at is not None)
    return GateCase(
        rights=device.rights,
        observed=observed,
        mark=device.mark,
        # Unreadable: whoever was on it at the last look has not been seen to leave.
        foreign=frozenset(device.rungs if device.foreign is None else device.foreign),
        always_open=frozenset(world.settings.always_open_uids),
        stuck=next(stuck, None),
    )


def _closes_nothing(action: Action, observed: Observed) -> bool:
    """Sorts the closing of gates before everything else."""
    if not isinstance(action, SetGate):
        return True
    gate = observed[action.device].gate
    return gate is not None and gate.uids <= action.uids and gate.group_open <= action.group_open


def _signal_early(
    world: _World, ladder: Ladder, devices: Sequence[_Device]
) -> tuple[list[Action], Ladder]:
    """Once for each end; what could not be seen when it was due is made up for until the end."""
    due = early.due(world.grants, now=world.now)
    told = world.ladder.told & {early.fact(grant).id for grant in due}
    cases = [
        early.Case(grant, holders)
        for device in devices
        for grant in due
        if early.fact(grant).id not in told and (holders := _asked_for(world, device, grant))
    ]
    told |= {early.fact(case.grant).id for case in cases}
    return [*early.signals(cases)], msgspec.structs.replace(ladder, told=ladder.told | told)


def _asked_for(world: _World, device: _Device, grant: HostGrant) -> tuple[Holder, ...]:
    """Those whom the early signal of a grant is for; nobody where anything is in doubt."""
    due = device.rights
    if world.settings.mode != "enforce" or not world.plan.may_stop:
        return ()
    if grant.device != due.device or grant.uid not in due.uids:
        return ()
    return tuple(
        holder
        for holder in device.state.holders or ()
        if early.was_there(holder, grant)
        and holder.uses
        and holder.protected is None
        and world.spared.isdisjoint((holder.uid, *holder.uids))
    )


def _move_people(
    world: _World, ladder: Ladder, devices: Sequence[_Device]
) -> tuple[list[Action], Ladder]:
    """Take every person without a right one step further, unless it is too many at once."""
    cases = [case for device in devices for case in _cases(world, device)]
    due = [case for case in cases if eviction.is_due_without_an_end(case)]
    too_many = len(due) > world.settings.kill_budget
    actions, ladder = _hold_fire(ladder, len(due), too_many=too_many, now=world.now)
    read = {device.rights.device for device in devices if device.foreign is not None}
    rungs = [rung for rung in ladder.rungs if rung.device not in read]
    for case in cases:
        rung, steps = eviction.step(replace(case, hold_fire=too_many and case in due))
        actions += steps
        if rung is not None:
            rungs.append(rung)
    kept = [rung for rung in rungs if rung.device in world.settings.managed]
    ordered = tuple(sorted(kept, key=lambda rung: (rung.device, rung.uid)))
    return actions, msgspec.structs.replace(ladder, rungs=ordered)


def _cases(world: _World, device: _Device) -> list[Case]:
    return [
        Case(
            rights=device.rights,
            uid=uid,
            holders=holders,
            gate=device.state.gate,
            settings=world.settings,
            plan=world.plan,
            enforcing_since=world.ladder.enforcing_since,
            now=world.now,
            rung=device.rungs.get(uid),
        )
        for uid, holders in sorted((device.foreign or {}).items())
    ]


def _farewells(device: _Device) -> list[Action]:
    """Told of those with a rung whom this look no longer saw on the device."""
    if device.foreign is None:
        return []
    return [
        action
        for uid, rung in sorted(device.rungs.items())
        if uid not in device.present
        for action in eviction.gone(rung)
    ]


def _hold_fire(
    ladder: Ladder, pairs: int, *, too_many: bool, now: datetime
) -> tuple[list[Action], Ladder]:
    """So many at once is rather a fault of ours than of theirs: stop nobody new, and say so once."""
    if not too_many:
        return [], msgspec.structs.replace(ladder, held_fire_at=None)
    if ladder.held_fire_at is not None:
        return [], ladder
    text = f"{pairs} people would be stopped at once, and none has an end that says so"
    facts = (Fact(kind="hold_fire", since=now, text=text),)
    return [Tell(facts=facts)], msgspec.structs.replace(ladder, held_fire_at=now)
