"""Whom a host would stop, when at the earliest and why, if it enforced from now on.

Nothing is guessed here: the agent's own decisions are asked, instant after instant, as if everybody
stayed where they are and nobody booked anything else.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from reservations.core.enforcement import (
    Decision,
    DeviceState,
    GateMark,
    GateState,
    Holder,
    HostGrant,
    Ladder,
    Party,
    PlanState,
    Rung,
    SetGate,
    StopUnit,
    Terminate,
)
from reservations.core.reconcile import next_edge, plan_actions
from reservations.core.wire import HostSettings

Why = Literal["ended", "booked", "time_up"]

# Beyond this nobody is adopted any more, whatever a site has set; bookings are rarely made further ahead.
HORIZON: Final = timedelta(days=30)
# A gate is seen closed in the look after the one that closed it; more looks at one instant change nothing.
_LOOKS: Final = 4
_MAX_INSTANTS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Stop:
    """One party on one device. ``at`` is None where nobody would stop it within the horizon.

    ``since`` is when its oldest process began. ``booking`` is the one that ended, or that needs the device.
    """

    device: str
    party: Party
    pids: tuple[int, ...]
    since: datetime
    at: datetime | None = None
    why: Why | None = None
    booking: int | None = None


@dataclass(frozen=True, slots=True)
class Foreseen:
    """``fire_held_at``: from when so many would be stopped at once that the host stops nobody."""

    stops: tuple[Stop, ...]
    fire_held_at: datetime | None = None


class _Course:
    """The host as it would become: its gates, who is still there, and what its agent remembers.

    Devices have nothing to do with each other but the kill budget. So each one is looked at only when
    its own time has come, and those who wait elsewhere because they are too many are taken off the budget.
    """

    def __init__(
        self,
        grants: Mapping[str, Sequence[HostGrant]],
        holders: Mapping[str, Iterable[Holder]],
        settings: HostSettings,
        now: datetime,
    ) -> None:
        self._grants = grants
        self._settings = settings
        self._began = now
        self._holders = {device: tuple(found) for device, found in holders.items()}
        self._gates = {device: GateState() for device in holders}
        self._rungs: dict[str, list[Rung]] = {device: [] for device in holders}
        self._marks: dict[str, GateMark] = {}
        self._held: dict[str, int] = {}
        self.stops: list[Stop] = []
        self.fire_held_at: datetime | None = None

    def look(self, devices: Collection[str], now: datetime) -> set[str]:
        """All that happens on these at this instant; says which devices were looked at."""
        seen = set(devices)
        self._look(devices, now)
        # Once there are few enough left, those who waited for that are stopped as well.
        while self._held and sum(self._held.values()) <= self._settings.kill_budget:
            waiting = sorted(self._held)
            seen |= {*waiting}
            self._look(waiting, now)
        return seen

    def next(self, device: str, now: datetime) -> datetime | None:
        if not self._holders[device]:
            return None
        return next_edge(
            self._grants[device], ladder=self._ladder([device]), settings=self._settings, now=now
        )

    def remaining(self) -> list[Stop]:
        """Those who were found without a right at some time and stopped at none."""
        return [
            Stop(device, rung.party, rung.pids, self._since(device, rung.pids))
            for device, rungs in self._rungs.items()
            for rung in rungs
            if any(one.pid in rung.pids for one in self._holders[device])
        ]

    def _look(self, devices: Collection[str], now: datetime) -> None:
        elsewhere = sum(count for device, count in self._held.items() if device not in devices)
        budget = max(0, self._settings.kill_budget - elsewhere)
        settings = msgspec.structs.replace(
            self._settings, managed=tuple(devices), kill_budget=budget
        )
        grants = [grant for device in devices for grant in self._grants[device]]
        for _ in range(_LOOKS):
            decision = plan_actions(
                grants,
                self._observed(devices),
                ladder=self._ladder(devices),
                now=now,
                settings=settings,
                plan=PlanState(as_of=now),
            )
            self._take(decision, devices, now)
            if not decision.look_again:
                break

    def _observed(self, devices: Iterable[str]) -> dict[str, DeviceState]:
        return {
            one: DeviceState(gate=self._gates[one], holders=self._holders[one]) for one in devices
        }

    def _ladder(self, devices: Iterable[str]) -> Ladder:
        devices = tuple(devices)
        return Ladder(
            rungs=tuple(rung for device in devices for rung in self._rungs[device]),
            gates=tuple(self._marks[device] for device in devices if device in self._marks),
            enforcing_since=self._began,
        )

    def _take(self, decision: Decision, devices: Collection[str], now: datetime) -> None:
        self._marks |= {mark.device: mark for mark in decision.ladder.gates}
        self._rungs |= {device: [] for device in devices}
        for rung in decision.ladder.rungs:
            self._rungs[rung.device].append(rung)
        for action in decision.actions:
            if isinstance(action, SetGate):
                self._gates[action.device] = action.state
            elif isinstance(action, Terminate | StopUnit):
                self._stop(action, now)
        self._held = {one: n for one, n in self._held.items() if one not in devices}
        self._held |= decision.held_fire_on
        if decision.held_fire_on:
            self.fire_held_at = self.fire_held_at or now

    def _stop(self, action: Terminate | StopUnit, now: datetime) -> None:
        """Whoever was asked to end is taken for gone: what counts here is when they were asked."""
        device = action.device
        rung = next(one for one in self._rungs[device] if set(action.pids) <= set(one.pids))
        why, booking = self._reason(rung, now)
        since = self._since(device, rung.pids)
        self.stops.append(Stop(device, rung.party, rung.pids, since, now, why, booking))
        gone = set(rung.pids)
        self._holders[device] = tuple(one for one in self._holders[device] if one.pid not in gone)

    def _reason(self, rung: Rung, now: datetime) -> tuple[Why, int | None]:
        if rung.kind == "overrun":
            return "ended", rung.booking
        needed = next((one for one in self._grants[rung.device] if one.runs(now)), None)
        return ("booked", needed.booking) if needed else ("time_up", None)

    def _since(self, device: str, pids: Iterable[int]) -> datetime:
        named = set(pids)
        return min(one.started for one in self._holders[device] if one.pid in named)


def foresee(
    grants: Sequence[HostGrant],
    holders: Mapping[str, Iterable[Holder]],
    *,
    settings: HostSettings,
    now: datetime,
) -> Foreseen:
    """What would become of everybody on these devices; ``holders`` by device, each one with its right or not."""
    settings = msgspec.structs.replace(settings, mode="enforce", hold=None)
    here: defaultdict[str, list[HostGrant]] = defaultdict(list)
    for grant in grants:
        here[grant.device].append(grant)
    course = _Course(here, holders, settings, now)
    due: dict[datetime, set[str]] = {now: {*settings.managed} & holders.keys()}
    for _ in range(_MAX_INSTANTS):
        at = min(due, default=None)
        if at is None or at > now + HORIZON:
            break
        for device in course.look(sorted(due.pop(at)), at):
            following = course.next(device, at)
            if following is not None:
                due.setdefault(following, set()).add(device)
    stops = [*course.stops, *course.remaining()]
    return Foreseen(tuple(sorted(stops, key=_order)), course.fire_held_at)


def _order(stop: Stop) -> tuple[bool, float, str, int]:
    return (stop.at is None, stop.at.timestamp() if stop.at else 0.0, stop.device, stop.party.uid)
