"""A made-up host for tests of the agent's decisions: gates and processes that actions move."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import msgspec

from reservations.core.enforcement import (
    Action,
    Decision,
    DeviceState,
    Fact,
    GateState,
    Holder,
    HostGrant,
    Keeper,
    Kill,
    Ladder,
    PlanState,
    RestoreGate,
    SetGate,
    StopUnit,
    Terminate,
)
from reservations.core.reconcile import plan_actions
from reservations.core.wire import HostSettings

ELEVEN = datetime(2027, 3, 1, 11, tzinfo=UTC)
GPU = "GPU-a"
ALICE, BOB, CAROL = 61001, 61002, 61003
SETTINGS = HostSettings(mode="enforce", managed=(GPU,))


def at(seconds: float = 0, *, minutes: float = 0, hours: float = 0) -> datetime:
    """Counted from eleven o'clock."""
    return ELEVEN + timedelta(hours=hours, minutes=minutes, seconds=seconds)


def grant(
    uid: int,
    start: datetime = ELEVEN,
    end: datetime | None = None,
    *,
    booking: int | None = None,
    device: str = GPU,
    early_signal: bool = False,
    keep_if_free: bool = False,
) -> HostGrant:
    """One hour unless said otherwise; a booking of their own."""
    return HostGrant(
        booking=uid if booking is None else booking,
        device=device,
        uid=uid,
        unix_name=f"u{uid}",
        start=start,
        end=end or start + timedelta(hours=1),
        early_signal=early_signal,
        keep_if_free=keep_if_free,
    )


@dataclass(frozen=True)
class Process:
    pid: int
    uid: int
    started: datetime
    device: str = GPU
    ancestors: tuple[int, ...] = ()
    obeys: bool = True
    mortal: bool = True
    uses: bool = True
    protected: str | None = None
    container: str | None = None
    booking: int | None = None
    # Starts it again whenever it is ended, unless it is stopped through this.
    keeper: Keeper | None = None

    def as_holder(self) -> Holder:
        return Holder(
            pid=self.pid,
            uid=self.uid,
            uids=(self.uid, self.uid),
            started=self.started,
            ancestors=self.ancestors,
            uses=self.uses,
            protected=self.protected,
            container=self.container,
            booking=self.booking,
            keeper=self.keeper,
        )


@dataclass
class Stage:
    """The host, what the agent remembers of it, and everything that happened, in order."""

    settings: HostSettings = SETTINGS
    grants: list[HostGrant] = field(default_factory=list)
    gates: dict[str, GateState | None] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    # None: a plan as of each look, so that every end is confirmed.
    plan: PlanState | None = None
    unreadable: bool = False
    unreadable_devices: set[str] = field(default_factory=set)
    # Long before anything here, so that no process is adopted unless a test says so.
    ladder: Ladder = field(default_factory=lambda: Ladder(enforcing_since=at(hours=-99)))
    actions: list[tuple[datetime, Action]] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    managers_work: bool = True
    # What a unit starts again is there in the first look after it.
    _restarting: list[Process] = field(default_factory=list)
    _pids: int = 1000

    def __post_init__(self) -> None:
        for device in self.settings.managed:
            self.gates.setdefault(device, GateState())

    def run(self, uid: int, started: datetime, **traits: object) -> Process:
        self._pids += 1
        made = replace(Process(self._pids, uid, started), **traits)  # type: ignore[arg-type]
        self.processes.append(made)
        return made

    def look(self) -> dict[str, DeviceState]:
        return {
            device: DeviceState(
                gate=gate,
                holders=None
                if self.unreadable or device in self.unreadable_devices
                else tuple(p.as_holder() for p in self.processes if p.device == device),
            )
            for device, gate in self.gates.items()
        }

    def decide(self, now: datetime) -> Decision:
        self.processes += [process for process in self._restarting if process.started < now]
        self._restarting = [process for process in self._restarting if process.started >= now]
        return plan_actions(
            self.grants,
            self.look(),
            ladder=self.ladder,
            now=now,
            settings=self.settings,
            plan=self.plan or PlanState(as_of=now),
        )

    def once(self, now: datetime) -> Decision:
        """One look and its actions."""
        decision = self.decide(now)
        self.take(decision, now)
        return decision

    def take(self, decision: Decision, now: datetime) -> None:
        """Carry it out. The ladder goes through its form on disk."""
        for action in decision.actions:
            self.actions.append((now, action))
            self.act(action, now)
            self.facts += action.facts
        self.ladder = msgspec.json.decode(msgspec.json.encode(decision.ladder), type=Ladder)

    def tick(self, now: datetime) -> list[Fact]:
        """Look and act until there is nothing more to do at this instant; what was told."""
        before = len(self.facts)
        for _ in range(5):
            if not self.once(now).look_again:
                return self.facts[before:]
        raise AssertionError(f"never comes to rest: {self.actions[-5:]}")

    def ticks(self, instants: Iterable[datetime]) -> list[Fact]:
        return [fact for now in instants for fact in self.tick(now)]

    def act(self, action: Action, now: datetime) -> None:
        if isinstance(action, SetGate):
            self.gates[action.device] = action.state
        elif isinstance(action, RestoreGate):
            self.gates[action.device] = GateState(group_open=True, sound=False)
        elif isinstance(action, Terminate):
            self._end((p for p in self.processes if p.pid in action.pids and p.obeys), now)
        elif isinstance(action, Kill):
            self._end((p for p in self.processes if p.pid in action.pids and p.mortal), now)
        elif isinstance(action, StopUnit) and self.managers_work:
            self.processes = [p for p in self.processes if p.keeper != action.keeper]
            self._restarting = [p for p in self._restarting if p.keeper != action.keeper]

    def open_to(self, device: str = GPU) -> frozenset[int]:
        gate = self.gates[device]
        assert gate is not None
        return gate.uids

    def alive(self, process: Process) -> bool:
        return process in self.processes

    def done(self, kind: type[Action]) -> list[Action]:
        return [action for _, action in self.actions if isinstance(action, kind)]

    def _end(self, ending: Iterable[Process], now: datetime) -> None:
        ended = {process.pid: process for process in ending}
        self.processes = [process for process in self.processes if process.pid not in ended]
        for process in ended.values():
            if process.keeper is not None:
                self._pids += 1
                self._restarting.append(replace(process, pid=self._pids, started=now))


def kinds(facts: Iterable[Fact]) -> list[str]:
    return [fact.kind for fact in facts]


def every(seconds: float, start: datetime, end: datetime) -> list[datetime]:
    """Instants from ``start`` to ``end``, both in."""
    steps = int((end - start).total_seconds() / seconds)
    return [start + timedelta(seconds=seconds * step) for step in range(steps + 1)]
