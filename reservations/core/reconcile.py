"""Compare what a host should allow with what it does allow.

Level-triggered: the answer depends on the two states and the clock alone, never on what woke us.
Gates close before anybody is signalled, ends come before starts, and doubt stops nobody.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from reservations.core import drift, early, eviction, stopping
from reservations.core.enforcement import (
    Action,
    Decision,
    Fact,
    GateMark,
    GateState,
    Holder,
    HostGrant,
    Keeper,
    Ladder,
    Observed,
    Party,
    PlanState,
    RestoreGate,
    SetGate,
    Tell,
)
from reservations.core.gating import GateCase, gate_step, opened
from reservations.core.judging import WALK_UP_NOTICE, Case
from reservations.core.rights import given_back, turn_of
from reservations.core.situation import Device, World, looked_at, members_of
from reservations.core.wire import HostSettings

# A signalled process that obeys is gone within moments: do not let the next person wait a second.
LOOK_AFTER_SIGNAL = timedelta(seconds=0.1)


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
    members = members_of(grants, observed)
    world = World(grants, observed, ladder, now, settings, plan, members)
    devices = [looked_at(world, device) for device in sorted({*settings.managed} & observed.keys())]
    farewells = [action for device in devices for action in _farewells(device)]
    restored, ladder = _restore_gates(ladder, settings)
    gated, ladder = _move_gates(world, ladder, devices)
    signalled, ladder = _signal_early(world, ladder, devices)
    evicted, ladder, held = _move_people(world, ladder, devices)
    return Decision(
        actions=(*farewells, *restored, *gated, *signalled, *evicted),
        ladder=ladder,
        look_again=any(isinstance(action, SetGate) for action in gated),
        held_fire_on=held,
    )


def next_edge(
    grants: Sequence[HostGrant], *, ladder: Ladder, settings: HostSettings, now: datetime
) -> datetime | None:
    """The first instant after ``now`` at which the answer may change by time alone."""
    edges = [edge for grant in grants for edge in (grant.start, grant.end)]
    edges += [early.due_at(grant) for grant in grants if grant.early_signal]
    if settings.unbooked_use == "allow":
        edges += [grant.start - WALK_UP_NOTICE for grant in grants]
    for rung in ladder.rungs:
        edges += stopping.next_due(rung, settings)
        last = rung.last_pass_at or rung.signalled_at
        if last is not None:
            edges.append(last + LOOK_AFTER_SIGNAL)
    for mark in ladder.gates:
        edges += drift.next_due(mark)
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


def _restore_gates(ladder: Ladder, settings: HostSettings) -> tuple[list[Action], Ladder]:
    """Give back the nodes of devices that are gated no more."""
    gated = set(settings.managed) if settings.mode == "enforce" else set()
    leaving = [mark for mark in ladder.gates if mark.device not in gated]
    kept = tuple(mark for mark in ladder.gates if mark.device in gated)
    actions: list[Action] = [RestoreGate(device=mark.device) for mark in leaving]
    return actions, msgspec.structs.replace(ladder, gates=kept)


def _move_gates(
    world: World, ladder: Ladder, devices: Iterable[Device]
) -> tuple[list[Action], Ladder]:
    """Set the gates that differ, those that close before those that open."""
    if world.settings.mode != "enforce":
        return [], msgspec.structs.replace(ladder, told=frozenset())
    actions: list[Action] = []
    marks = {mark.device: mark for mark in ladder.gates}
    # What was told of a running grant is not told again because its device could not be read once.
    running = [grant for grant in world.grants if grant.runs(world.now)]
    by_hand = tuple(given_back(world.grants, now=world.now))
    since = ladder.enforcing_since
    turns = {grant: turn_of(grant, by_hand, enforcing_since=since) for grant in running}
    told = ladder.told & {opened(grant, turn).id for grant, turn in turns.items()}
    for device in devices:
        if device.state.gate is None:
            continue
        case = _gate_case(world, device, device.state.gate)
        step = gate_step(case, told=ladder.told, now=world.now)
        actions += step.actions
        told |= {fact.id for fact in step.once}
        marks[device.rights.device] = step.mark
    actions.sort(key=lambda action: _closes_nothing(action, world.observed))
    gates = tuple(marks[name] for name in sorted(marks))
    return actions, msgspec.structs.replace(ladder, gates=gates, told=told)


def _gate_case(world: World, device: Device, observed: GateState) -> GateCase:
    in_the_way = device.in_the_way
    stuck = (device.rungs[p] for p in in_the_way if p in device.rungs and device.rungs[p].stuck_at)
    return GateCase(
        rights=device.rights,
        observed=observed,
        mark=device.mark or GateMark(device=device.rights.device, state=None),
        foreign=in_the_way,
        always_open=frozenset(world.settings.always_open_uids),
        enforcing_since=world.ladder.enforcing_since,
        stuck=next(stuck, None),
    )


def _closes_nothing(action: Action, observed: Observed) -> bool:
    """Sorts the closing of gates before everything else."""
    if not isinstance(action, SetGate):
        return True
    gate = observed[action.device].gate
    return gate is not None and gate.uids <= action.uids and gate.group_open <= action.group_open


def _signal_early(
    world: World, ladder: Ladder, devices: Sequence[Device]
) -> tuple[list[Action], Ladder]:
    """Once for each end; what could not be seen when it was due is made up for until the end."""
    due = early.due(world.grants, now=world.now)
    told = world.ladder.told & {early.fact(grant).id for grant in due}
    cases = [
        early.Case(grant, holders)
        for device in devices
        for grant in due
        if early.fact(grant).id not in told
        and grant.device not in ladder.given_up
        and (holders := _asked_for(world, device, grant))
    ]
    told |= {early.fact(case.grant).id for case in cases}
    return [*early.signals(cases)], msgspec.structs.replace(ladder, told=ladder.told | told)


def _asked_for(world: World, device: Device, grant: HostGrant) -> tuple[Holder, ...]:
    """Those whom the early signal of a grant is for; nobody where anything is in doubt."""
    due = device.rights
    if world.settings.mode != "enforce" or not world.plan.may_stop:
        return ()
    if grant.device != due.device or grant.uid not in due.uids:
        return ()
    return tuple(
        holder
        for holder in device.state.holders or ()
        if world.party_of(holder) == Party(grant.uid)
        and early.was_there(holder, grant)
        and holder.uses
        and not world.spares(holder)
    )


def _move_people(
    world: World, ladder: Ladder, devices: Sequence[Device]
) -> tuple[list[Action], Ladder, dict[str, int]]:
    """Take every party without a right one step further, unless it is too many at once.

    Also says how many on which device are not stopped for that reason.
    """
    cases = [case for device in devices for case in _cases(world, ladder, device)]
    due = [eviction.is_due_without_an_end(case) for case in cases]
    too_many = sum(due) > world.settings.kill_budget
    actions, ladder = _hold_fire(ladder, sum(due), too_many=too_many, now=world.now)
    if too_many:
        held = zip(cases, due, strict=True)
        cases = [replace(case, hold_fire=is_due) for case, is_due in held]
    units = _units_to_stop(world, cases)
    read = {device.rights.device for device in devices if device.foreign is not None}
    rungs = [rung for rung in ladder.rungs if rung.device not in read]
    for case in cases:
        rung, steps = eviction.step(replace(case, units=units) if units else case)
        actions += steps
        if rung is not None:
            rungs.append(rung)
    kept = [rung for rung in rungs if rung.device in world.settings.managed]
    ordered = tuple(sorted(kept, key=lambda rung: (rung.device, rung.uid, rung.container or "")))
    held_on = Counter(case.rights.device for case in cases if case.hold_fire)
    return actions, msgspec.structs.replace(ladder, rungs=ordered), dict(held_on)


def _cases(world: World, ladder: Ladder, device: Device) -> list[Case]:
    given_up = device.rights.device in ladder.given_up
    return [
        Case(
            rights=device.rights,
            party=party,
            holders=holders,
            gate=None if given_up else device.state.gate,
            settings=world.settings,
            plan=world.plan,
            enforcing_since=world.ladder.enforcing_since,
            now=world.now,
            rung=device.rungs.get(party),
            tolerated=party not in device.in_the_way,
        )
        for party, holders in sorted((device.foreign or {}).items(), key=_by_party)
    ]


def _by_party(entry: tuple[Party, object]) -> tuple[int, str]:
    return entry[0].uid, entry[0].container or ""


def _units_to_stop(world: World, cases: Iterable[Case]) -> frozenset[Keeper]:
    """The units all of whose processes, as far as anybody has seen, are to be stopped in this look.

    One that also serves a device to which its person has a right, or may have, is left alone.
    """
    keepers = {holder.keeper for case in cases for holder in case.holders if holder.keeper}
    if not keepers:
        return frozenset()
    ending = {(case.rights.device, pid) for case in cases for pid in eviction.pids_to_stop(case)}
    needed = {
        holder.keeper
        for device, state in world.observed.items()
        for holder in state.holders or ()
        if (device, holder.pid) not in ending and _is_worth_sparing(world, device, holder)
    }
    return frozenset(
        holder.keeper
        for case in cases
        for holder in case.holders
        if holder.keeper and holder.keeper not in needed and not _may_serve_unseen(world, holder)
    )


def _is_worth_sparing(world: World, device: str, holder: Holder) -> bool:
    """Not so if it has the device open, does not use it, and has no right to begin."""
    return holder.uses or holder.protected is not None or _has_grant(world, device, holder)


def _may_serve_unseen(world: World, holder: Holder) -> bool:
    """Whether its people have a right to a device whose processes cannot be read now."""
    unread = (device for device, state in world.observed.items() if state.holders is None)
    return any(_has_grant(world, device, holder) for device in unread)


def _has_grant(world: World, device: str, holder: Holder) -> bool:
    people = world.people_behind(holder)
    return any(
        grant.device == device and grant.uid in people and grant.runs(world.now)
        for grant in world.grants
    )


def _farewells(device: Device) -> list[Action]:
    """Told of those with a rung whom this look no longer saw on the device."""
    if device.foreign is None:
        return []
    return [
        action
        for party, rung in sorted(device.rungs.items(), key=_by_party)
        if party not in device.present
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
