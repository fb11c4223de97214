"""What an agent knows and what it may do: the plain data between looking, deciding and acting.

Everything is immutable. `msgspec` writes and reads those that a host keeps on disk.
"""

from collections.abc import Mapping
from datetime import datetime
from hashlib import sha256
from typing import Literal, NamedTuple

import msgspec

from reservations.core.lifecycle import LAST_CHANGE_BEFORE_END
from reservations.core.wire import ReportKind, Shape, Uid


class HostGrant(Shape, frozen=True, kw_only=True):
    """A grant whose person is a uid of this host.

    ``booking`` is None where no plan gave it, but root on the host, by hand.
    """

    booking: int | None
    device: str
    uid: Uid
    unix_name: str
    start: datetime
    end: datetime
    early_signal: bool = False
    keep_if_free: bool = False

    def runs(self, now: datetime) -> bool:
        """Whether it is in force. An end is out: at 11:00:00 only the next one is."""
        return self.start <= now < self.end


class PlanState(Shape, frozen=True, kw_only=True):
    """How far the stored plan may be trusted.

    ``may_stop`` is False after a reboot and after a corrupt plan file, until one fetch succeeded,
    and where the agent cannot see the host's processes. ``as_of`` is None before the first plan.
    """

    as_of: datetime | None
    complete_until: datetime | None = None
    may_stop: bool = True

    def confirms(self, end: datetime) -> bool:
        """Whether nobody can have moved this end since the plan was made."""
        return self.as_of is not None and self.as_of >= end - LAST_CHANGE_BEFORE_END


class GateState(Shape, frozen=True, kw_only=True):
    """Who may open a device: these uids and, if ``group_open``, everybody in the access group.

    ``sound`` is False where a node differs from what the gate writes in any other way.
    """

    uids: frozenset[int] = frozenset()
    group_open: bool = False
    sound: bool = True


class Keeper(Shape, frozen=True, kw_only=True):
    """What starts a process again when it is ended: it has to be stopped through this, or the loop never ends.

    ``owner``: the uid whose own service manager it is; None: the machine's.
    """

    engine: Literal["docker", "podman", "systemd"]
    name: str
    owner: int | None = None


class Party(NamedTuple):
    """Who is led off a device together: a person, or a container that belongs to nobody's booking."""

    uid: int
    container: str | None = None


class Holder(Shape, frozen=True, kw_only=True):
    """A process with a device open.

    ``uids`` are the real and the effective one, ``uid`` the person behind them. ``uses`` is False
    while an open descriptor is all there is. ``protected`` says why it must never be stopped.
    ``ancestors`` are the pids above it, the parent first. ``container`` is the full id of its
    container, ``booking`` the one that container was started for; a rootless container is its
    person's, like any other process, and has no ``container`` here. ``keeper`` restarts it.
    """

    pid: int
    uid: int
    uids: tuple[int, ...]
    started: datetime
    ancestors: tuple[int, ...] = ()
    uses: bool = True
    protected: str | None = None
    unit: str | None = None
    container: str | None = None
    booking: int | None = None
    keeper: Keeper | None = None


class DeviceState(Shape, frozen=True, kw_only=True):
    """One device as found. None means that it could not be read: neither free nor a violation.

    The gate is to be looked at before the holders: what opened in between is then seen.
    """

    gate: GateState | None
    holders: tuple[Holder, ...] | None


Observed = Mapping[str, DeviceState]


class Fact(Shape, frozen=True, kw_only=True):
    """What is to be reported once the action that carries it has been done.

    ``edge`` is the instant at which it was due: the start or end of a grant. ``since`` tells two
    facts of one kind about the same person apart.
    """

    kind: ReportKind
    since: datetime
    device: str | None = None
    booking: int | None = None
    uid: int | None = None
    pids: tuple[int, ...] = ()
    edge: datetime | None = None
    text: str = ""
    container: str | None = None

    @property
    def id(self) -> str:
        """The same for the same fact, so that a repeat after a crash is stored once."""
        who = self.container or self.uid
        words = (self.kind, self.device, self.booking, who, self.since.isoformat())
        return sha256("|".join(map(str, words)).encode()).hexdigest()[:32]

    def latency_s(self, at: datetime) -> float | None:
        """Seconds from the edge to the instant ``at`` which it was done."""
        return None if self.edge is None else (at - self.edge).total_seconds()


class SetGate(Shape, frozen=True, kw_only=True):
    """Let exactly these people open the device."""

    device: str
    uids: frozenset[int]
    group_open: bool
    facts: tuple[Fact, ...] = ()

    @property
    def state(self) -> GateState:
        return GateState(uids=self.uids, group_open=self.group_open)


class RestoreGate(Shape, frozen=True, kw_only=True):
    """Put the device's nodes back as they were before Berth gated them."""

    device: str
    facts: tuple[Fact, ...] = ()


class Terminate(Shape, frozen=True, kw_only=True):
    """SIGTERM and SIGCONT to the topmost holders of a person."""

    device: str
    uid: int
    pids: tuple[int, ...]
    facts: tuple[Fact, ...] = ()


class StopUnit(Shape, frozen=True, kw_only=True):
    """Stop what keeps a person's holders running, through its own manager.

    ``pids`` are those holders; ``grace_s`` is what they have from SIGTERM to SIGKILL.
    """

    device: str
    uid: int
    keeper: Keeper
    pids: tuple[int, ...]
    grace_s: float
    facts: tuple[Fact, ...] = ()


class Kill(Shape, frozen=True, kw_only=True):
    """SIGKILL to all holders of a person."""

    device: str
    uid: int
    pids: tuple[int, ...]
    facts: tuple[Fact, ...] = ()


class EarlySignal(Shape, frozen=True, kw_only=True):
    """SIGUSR1 to the topmost holders of a person, whose right to the device ends soon."""

    device: str
    uid: int
    pids: tuple[int, ...]
    facts: tuple[Fact, ...] = ()


class Tell(Shape, frozen=True, kw_only=True):
    """Only report; a `warned` fact is also a message to the person."""

    facts: tuple[Fact, ...]


Action = SetGate | RestoreGate | EarlySignal | Terminate | StopUnit | Kill | Tell

RungKind = Literal["overrun", "intruder", "walk_up"]


class Rung(Shape, frozen=True, kw_only=True):
    """How far one party has been led off one device.

    ``edge`` is the end of their right, where they had one; ``booking`` the one concerned.
    ``signalled`` are the pids that had SIGTERM, or whose unit was asked to stop.
    """

    device: str
    uid: int
    container: str | None = None
    kind: RungKind
    since: datetime
    edge: datetime | None = None
    booking: int | None = None
    pids: tuple[int, ...] = ()
    warned_at: datetime | None = None
    signalled_at: datetime | None = None
    signalled: tuple[int, ...] = ()
    killed_at: datetime | None = None
    passes: int = 0
    last_pass_at: datetime | None = None
    stuck_at: datetime | None = None

    @property
    def party(self) -> Party:
        return Party(self.uid, self.container)


class GateMark(Shape, frozen=True, kw_only=True):
    """A device that Berth gates, and how its gate was last set; None once its nodes are new.

    ``repairs``: when it was put right of late. ``given_up_at``: since when it is left to whoever
    else changes it; ``tried_at``: when it was last set nevertheless.
    """

    device: str
    state: GateState | None
    repairs: tuple[datetime, ...] = ()
    given_up_at: datetime | None = None
    tried_at: datetime | None = None


class Ladder(Shape, frozen=True, kw_only=True):
    """What the agent must remember between two looks; kept on disk, so that a restart goes on.

    ``told`` holds the ids of facts about running grants that were reported. ``enforcing_since``
    is when the host was switched to `enforce`.
    """

    rungs: tuple[Rung, ...] = ()
    gates: tuple[GateMark, ...] = ()
    told: frozenset[str] = frozenset()
    enforcing_since: datetime | None = None
    held_fire_at: datetime | None = None

    @property
    def evicting(self) -> bool:
        """Whether somebody was signalled and may still be there: look every second."""
        return any(r.signalled_at is not None and r.stuck_at is None for r in self.rungs)

    @property
    def given_up(self) -> frozenset[str]:
        """The devices whose gate somebody else keeps changing: nobody on them is signalled."""
        return frozenset(mark.device for mark in self.gates if mark.given_up_at is not None)

    def after_reboot(self) -> "Ladder":
        """No process and no device node survived; what was decided did."""
        return Ladder(
            gates=tuple(GateMark(device=mark.device, state=None) for mark in self.gates),
            enforcing_since=self.enforcing_since,
        )

    def without_gate(self, failed: SetGate | RestoreGate) -> "Ladder":
        """Forget how a gate stands that could not be set, so that the next look plans it again."""
        others = tuple(mark for mark in self.gates if mark.device != failed.device)
        known = next((mark for mark in self.gates if mark.device == failed.device), None)
        unknown = GateMark(device=failed.device, state=None)
        if known is not None:
            unknown = msgspec.structs.replace(known, state=None)
        return msgspec.structs.replace(
            self,
            gates=(*others, unknown),
            told=self.told - {fact.id for fact in failed.facts},
        )


class Decision(Shape, frozen=True, kw_only=True):
    """What to do, in this order, and what to remember afterwards.

    ``look_again``: more may follow at once from what these actions change. ``held_fire_on``: how many on
    which device are not stopped because they are too many at once.
    """

    actions: tuple[Action, ...] = ()
    ladder: Ladder
    look_again: bool = False
    held_fire_on: dict[str, int] = {}
