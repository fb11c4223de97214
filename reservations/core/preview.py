"""Whom a host would stop, when at the earliest and why, if it enforced from now on.

Nothing is guessed here: the agent's own decisions are asked, instant after instant, as if everybody
stayed where they are and nobody booked anything else.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

import msgspec

from reservations.core.enforcement import (
    Decision,
    DeviceState,
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
_MAX_EDGES: Final = 5_000


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
    """The host as it would become: its gates, who is still there, and what its agent remembers."""

    def __init__(
        self,
        grants: Sequence[HostGrant],
        holders: Mapping[str, Iterable[Holder]],
        settings: HostSettings,
    ) -> None:
        self._grants = grants
        self._settings = settings
        self._holders = {device: tuple(found) for device, found in holders.items()}
        self._gates = {device: GateState() for device in holders}
        self._ladder = Ladder()
        self.stops: list[Stop] = []
        self.fire_held_at: datetime | None = None

    def look(self, now: datetime) -> None:
        for _ in range(_LOOKS):
            decision = plan_actions(
                self._grants,
                self._observed(),
                ladder=self._ladder,
                now=now,
                settings=self._settings,
                plan=PlanState(as_of=now),
            )
            self._take(decision, now)
            if not decision.look_again:
                return

    def next(self, now: datetime) -> datetime | None:
        if not any(self._holders.values()):
            return None
        return next_edge(self._grants, ladder=self._ladder, settings=self._settings, now=now)

    def remaining(self) -> list[Stop]:
        """Those who were found without a right at some time and stopped at none."""
        return [
            Stop(rung.device, rung.party, rung.pids, self._since(rung.device, rung.pids))
            for rung in self._ladder.rungs
            if any(one.pid in rung.pids for one in self._holders[rung.device])
        ]

    def _observed(self) -> dict[str, DeviceState]:
        return {
            device: DeviceState(gate=self._gates[device], holders=found)
            for device, found in self._holders.items()
        }

    def _take(self, decision: Decision, now: datetime) -> None:
        before, self._ladder = self._holders, decision.ladder
        for action in decision.actions:
            if isinstance(action, SetGate):
                self._gates[action.device] = action.state
            elif isinstance(action, Terminate | StopUnit):
                self._stop(action, before, now)
        if decision.ladder.held_fire_at is not None:
            self.fire_held_at = self.fire_held_at or now

    def _stop(
        self,
        action: Terminate | StopUnit,
        before: Mapping[str, tuple[Holder, ...]],
        now: datetime,
    ) -> None:
        """Whoever was asked to end is taken for gone: what counts here is when they were asked."""
        rung = next(
            rung
            for rung in self._ladder.rungs
            if rung.device == action.device and set(action.pids) <= set(rung.pids)
        )
        why, booking = self._reason(rung, now)
        since = self._since(action.device, rung.pids)
        self.stops.append(Stop(action.device, rung.party, rung.pids, since, now, why, booking))
        gone = set(rung.pids)
        self._holders = {
            device: tuple(one for one in found if device != action.device or one.pid not in gone)
            for device, found in self._holders.items()
        }

    def _reason(self, rung: Rung, now: datetime) -> tuple[Why, int | None]:
        if rung.kind == "overrun":
            return "ended", rung.booking
        here = (one for one in self._grants if one.device == rung.device)
        needed = next((one for one in here if one.runs(now)), None)
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
    here = [grant for grant in grants if grant.device in holders]
    course = _Course(here, holders, settings)
    at: datetime | None = now
    for _ in range(_MAX_EDGES):
        if at is None or at > now + HORIZON:
            break
        course.look(at)
        at = course.next(at)
    stops = [*course.stops, *course.remaining()]
    return Foreseen(tuple(sorted(stops, key=_order)), course.fire_held_at)


def _order(stop: Stop) -> tuple[bool, float, str, int]:
    return (stop.at is None, stop.at.timestamp() if stop.at else 0.0, stop.device, stop.party.uid)
