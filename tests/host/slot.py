"""One slot on the real kernel, for tests as root: nodes, uids and processes are real, only the time is given.

Decisions, gate, holder scan and signals work together here as in the agent's loop.
"""

import errno
import os
import signal
import stat
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec

from reservations.core.enforcement import DeviceState, HostGrant, Keeper, Ladder, PlanState
from reservations.core.reconcile import plan_actions
from reservations.core.wire import HealthProblem, HostSettings, ProcessUse, Report, Sample
from tests.core.stage import ALICE, BOB, GPU, at
from tests.host.people import as_person, let_everybody_into, wait_for_ever
from workers.host.clock import HostClock, boottime_s
from workers.host.gates.acl import AclGate
from workers.host.gates.originals import Originals
from workers.host.hands import Hands
from workers.host.holders import HolderScan, Moment, Target
from workers.host.processes import Processes

SETTINGS = HostSettings(mode="enforce", managed=(GPU,), grace_s=10, intruder_grace_s=30)


class Bench:
    """A host with one device, whose driver lists the processes that a test names; ``keeper`` keeps them."""

    def __init__(self, node: str, grants: list[HostGrant]) -> None:
        self.node = node
        self.grants = grants
        self.listed: list[int] = []
        self.keeper: Keeper | None = None
        self.reports: list[Report] = []
        self.problems: list[HealthProblem] = []
        self.now = at(0)
        originals = Originals(Path(node).with_name("originals.json"), boot_id="this-boot")
        self.gate = AclGate({GPU: [node]}, originals)
        self.processes = Processes()
        self.scan = HolderScan(self.processes, only_uids=frozenset({ALICE, BOB}))
        self.ladder = Ladder(enforcing_since=at(hours=-9))
        self.hands = Hands(
            processes=self.processes,
            clock=HostClock(wall=lambda: self.now),
            name_of=lambda uid: f"u{uid}",
        )

    def tick(self, now: datetime) -> list[str]:
        """Looks and acts until nothing more follows at once; the kinds of what was reported."""
        self.now = now
        told: list[str] = []
        again = True
        while again:
            decision = plan_actions(
                self.grants,
                {GPU: self.look()},
                ladder=self.ladder,
                now=now,
                settings=SETTINGS,
                plan=PlanState(as_of=now),
            )
            reports, self.ladder = self.hands.act(decision, self.gate)
            self.problems = [*self.problems, *self.hands.problems()]
            self.reports += reports
            told += [report.kind for report in reports]
            again = decision.look_again
        return told

    def look(self) -> DeviceState:
        gate = self.gate.observe()[GPU]
        uses = tuple(ProcessUse(pid=pid) for pid in self.listed)
        holders = self.scan.look(
            [Target(GPU, (self.node,), Sample(uuid=GPU, at=self.now, processes=uses))],
            moment=Moment(now=self.now, boottime_s=boottime_s()),
            may_open=None if gate is None or gate.group_open else gate.uids,
        )
        found = holders[GPU]
        if found is None:
            return DeviceState(gate=gate, holders=None)
        kept = tuple(msgspec.structs.replace(one, keeper=self.keeper) for one in found)
        return DeviceState(gate=gate, holders=kept)

    def holds(self, pid: int) -> bool:
        return any(holder.pid == pid for holder in self.look().holders or ())

    @property
    def passes(self) -> int:
        """How often SIGKILL was sent to whom is being led off the device."""
        return sum(rung.passes for rung in self.ladder.rungs)

    def opens_for(self, uid: int) -> bool:
        def attempt() -> int:
            try:
                os.close(os.open(self.node, os.O_RDWR))
            except OSError as error:
                return error.errno or -1
            return 0

        outcome = as_person(uid, attempt)
        assert outcome in (0, errno.EACCES)
        return outcome == 0


def make_node(folder: Path) -> str:
    """A device node in a folder that everybody may enter."""
    let_everybody_into(folder)
    node = folder / "nvidia0"
    os.mknod(node, stat.S_IFCHR | 0o660, os.makedev(1, 5))
    return str(node)


def job(node: str, *, ignores_sigterm: bool = False) -> Callable[[Callable[[], None]], None]:
    def body(ready: Callable[[], None]) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if ignores_sigterm else signal.SIG_DFL)
        os.open(node, os.O_RDWR)
        ready()
        wait_for_ever()

    return body


def idle(ready: Callable[[], None]) -> None:
    ready()
    wait_for_ever()


def again(old: Bench, ladder: Ladder) -> Bench:
    """A new agent on the same host, with the ladder from disk."""
    old.processes.close()
    made = Bench(old.node, old.grants)
    made.listed, made.ladder = old.listed, ladder
    return made
