"""The enforcing loop of a host: look, decide, act, report; then sleep until something may have changed.

Level-triggered: each tick compares what should be with what is, whatever woke it, and a second tick
with nothing changed does nothing. It needs no network; a tick that fails is logged and repeated.
"""

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import uuid4

import msgspec

from reservations.core import attention
from reservations.core.enforcement import Decision, Ladder
from reservations.core.reconcile import next_edge, plan_actions
from reservations.core.wire import (
    MAX_PROBLEMS,
    DeviceInfo,
    HealthProblem,
    Report,
    ReportKind,
    Sample,
    Samples,
    SamplesAnswer,
)
from workers.host import displays, status
from workers.host.activity import Activity
from workers.host.assembly import open_users, open_vendor
from workers.host.by_hand import HandFile, HandReader, HoldWatch, adopted, obeyed
from workers.host.clock import HostClock
from workers.host.config import Config, prepare_state_dir
from workers.host.control_plane import ControlPlane
from workers.host.disk import Disk
from workers.host.fence import Fence
from workers.host.fleet import Fleet
from workers.host.hands import Hands
from workers.host.heartbeat import Heartbeat, own_problems
from workers.host.holders import HolderScan
from workers.host.links import DeviceLink, Link, PlanLink, PostLink
from workers.host.lookout import Lookout, Sight
from workers.host.loop import Loop
from workers.host.names import Names
from workers.host.plan_store import PlanStore, StoredLadder
from workers.host.plans import InForce, Plans
from workers.host.processes import Processes, sees_the_host
from workers.host.readings import Readings
from workers.host.spool import Spool
from workers.host.telling import Teller
from workers.host.version import VERSION
from workers.host.wake import WakePipe

logger = logging.getLogger(__name__)

STEADY_S = 5.0
EVICTING_S = 1.0
# How often one tick looks again at what its own actions changed, before it sleeps first.
MAX_LOOKS = 5
# How long a stop waits for each exchange under way; the next agent repeats what it cuts off.
LINK_LIMIT_S = 1.0
# What a report waits for the name of somebody who is not in the plan.
NAME_WAIT_S = 0.1
# Longer than anybody holds the lock who only looks whether an agent runs.
LOCK_WAIT_S = 0.5


class Agent:
    """Everything of one host. `start` returns at once; the work is done in threads.

    ``leave`` is called with `LOOP_LEFT` if the loop ends without having been asked to.
    """

    def __init__(
        self,
        config: Config,
        *,
        clock: HostClock | None = None,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        prepare_state_dir(config)
        self._config = config
        self.clock = clock or HostClock()
        self._disk = Disk()
        self._store = PlanStore(config.state_dir)
        self.spool = Spool(config.state_dir / "spool.jsonl")
        self._names = Names(open_users(config))
        self.plans = Plans(
            host=config.host,
            store=self._store,
            clock=self.clock,
            names=self._names,
            local=config.local,
            report=self._report,
        )
        remembered = self._store.load_ladder(self.clock.boot_id)
        self._ladder = remembered.ladder
        self.spool.add(*remembered.reports)
        self._only = contextlib.ExitStack()
        self._hand = HandReader(HandFile(config.state_dir), report=self._report)
        self._holds = HoldWatch(self.clock, report=self._report)
        self._pipe = WakePipe(config.state_dir, on_wake=self.wake)
        self._prepare_looking()
        self._prepare_links()
        self._loop = Loop(lambda: self.tick(), summary=lambda: self._summary, leave=leave)
        self._summary = ""
        self._looked_at: datetime | None = None

    def _prepare_looking(self) -> None:
        config = self._config
        self._vendor = open_vendor(config, self.clock)
        self._fleet = Fleet(self._vendor, self.clock, config.state_dir / "inventory.json")
        self._fence = Fence(config, self._fleet, on_disturbed=self.wake)
        self._processes = Processes()
        self._lookout = Lookout(
            vendor=self._vendor,
            readings=Readings(self._vendor, self.clock),
            processes=self._processes,
            names=self._names,
            clock=self.clock,
            scan=HolderScan(self._processes),
        )
        self._hands = Hands(processes=self._processes, clock=self.clock, name_of=self._name_of)
        self._activity = Activity(config.state_dir / "activity.json")
        self._displays: tuple[DeviceInfo, ...] = ()
        self._sees_the_host = self._vendor.trusts_uids or sees_the_host()
        self._teller = Teller(config, people_are_real=not self._vendor.trusts_uids)
        self._stops = True

    def _prepare_links(self) -> None:
        config = self._config
        self._control_plane = ControlPlane(url=config.url, token=config.token, clock=self.clock)
        self._plan_link = PlanLink(
            control_plane=self._control_plane,
            plans=self.plans,
            clock=self.clock,
            on_change=self._plan_came,
        )
        self.heartbeat = Heartbeat(on_offer=lambda: self._post_link.nudge())
        self._post_link = PostLink(
            control_plane=self._control_plane,
            plans=self.plans,
            fleet=self._fleet,
            spool=self.spool,
            samples=self.heartbeat.take,
            on_answer=self._heard,
        )
        self._device_link = DeviceLink(fleet=self._fleet, on_change=self.wake)
        self._links: Sequence[Link] = (self._device_link, self._plan_link, self._post_link)

    def start(self) -> None:
        """Begins to enforce the stored plan, and to ask for a newer one.

        Raises:
            AlreadyRunning: another agent enforces this host.
        """
        self._only.enter_context(status.only_agent(self._config.state_dir, wait_s=LOCK_WAIT_S))
        self._report(self._own_report("agent_started", f"agent {VERSION}"))
        self._listen_to_root()
        for link in self._links:
            link.start()
        self._pipe.start()
        self._fence.start()
        self._teller.start()
        self._loop.start()

    def once(self) -> None:
        """One look in place of an agent that does not run: gates are set, and nobody is stopped.

        Raises:
            AlreadyRunning: an agent runs.
        """
        with status.only_agent(self._config.state_dir):
            self._stops = False
            self._listen_to_root()
            self._fleet.refresh()
            self.tick()

    def stop(self, *, limit_s: float = 5.0) -> None:
        """Ends the loop after its present tick; gates stay as they are."""
        self._loop.stop()
        for link in self._links:
            link.stop()
        self._pipe.stop()
        self._fence.stop()
        self._loop.join(limit_s)
        for link in self._links:
            link.join(LINK_LIMIT_S)
        self._teller.stop()
        self._control_plane.close()
        self._only.close()

    def nudge(self) -> None:
        """Something may have changed: ask for the plan and look. Costs one extra look at most."""
        self._plan_link.nudge()
        self.wake()

    def wake(self) -> None:
        """Look now."""
        self._loop.wake()

    def tick(self) -> float:
        """One pass or a few. Returns the seconds until the next tick is due."""
        self._fence.follow()
        self._listen_to_root()
        in_force = self._in_force()
        hold_ended = self._holds.follow(in_force.hold, self._hand.said)
        since = None if hold_ended else self._looked_at
        sight = self._look_until_still(in_force, full=False)
        # A full scan takes long, so it comes after gates have closed and known holders were told.
        if since is None or _any_ended(in_force, since, self._looked_at):
            sight = self._look_until_still(in_force, full=True)
        self._tell(sight, in_force)
        return self._until_next(in_force)

    def _look_until_still(self, in_force: InForce, *, full: bool) -> Sight:
        """Looks, and again while what was done may let more follow at once; then writes it down.

        Not between two looks: a disk is slower than the way from a closed gate to the first signal.
        """
        before = self._ladder
        reports: list[Report] = []
        try:
            for number in range(MAX_LOOKS):
                sight, again = self._pass(in_force, reports, full=full and number == 0)
                if not again:
                    break
        finally:
            self._remember(reports, before)
        return sight

    def _remember(self, reports: list[Report], before: Ladder) -> None:
        if not reports and self._ladder == before:
            return
        boot_id, done = self.clock.boot_id, tuple(reports)
        stored = StoredLadder(boot_id=boot_id, ladder=self._ladder, reports=done)
        with self._disk.keeping("who was warned and signalled"):
            self._store.save_ladder(stored)
        self._report(*done)
        self._teller.hear(done)

    def _pass(self, in_force: InForce, reports: list[Report], *, full: bool) -> tuple[Sight, bool]:
        """Looks once, does what follows and adds its reports; True if more may follow at once."""
        gate = self._fence.gate
        devices = [one for one in self._fence.devices if one.uuid not in in_force.yielded]
        sight = self._lookout.look(devices, gate, full=full, read=not in_force.yielded)
        # Read after looking, which takes time: an edge may have passed meanwhile.
        now = self.clock.now()
        decision = self._decide(in_force, sight, now)
        self._hands.lend(in_force.leases(now), gate, now=now)
        done, self._ladder = self._hands.act(decision, gate)
        self._looked_at = now
        reports += done
        return sight, decision.look_again

    def _decide(self, in_force: InForce, sight: Sight, now: datetime) -> Decision:
        if in_force.hold:
            return Decision(ladder=self._ladder)
        return plan_actions(
            in_force.grants,
            sight.observed,
            ladder=self._ladder,
            now=now,
            settings=in_force.settings,
            plan=in_force.state,
        )

    def _tell(self, sight: Sight, in_force: InForce) -> None:
        """Whoever wants to know what was seen: the control plane, root, and everybody on the host."""
        now = self.clock.now()
        samples = self._activity.stamp(sight.samples)
        for uuid, change in self._activity.changes(samples):
            self._report(self._own_report(change, device=uuid))
        if now >= self._sample_due(in_force):
            self._offer(samples, in_force, now)
        found = self._status(sight, in_force, now)
        with self._disk.keeping("what `berth-host status` shows"):
            status.write(self._config.state_dir, found)
        self._summary = status.in_a_line(found)
        devices = self._fence.devices
        self._teller.tell(samples, in_force, devices, ladder=self._ladder, now=now)

    def _listen_to_root(self) -> None:
        self._hand.look()
        self._ladder = adopted(self._ladder, self._hand.said)
        if self._fleet.let_go(bool(self._hand.said.yielded)):
            self._device_link.nudge()

    def _in_force(self) -> InForce:
        in_force = obeyed(self.plans.in_force(), self._hand.said, now=self.clock.now())
        self._displays = displays.left_alone(in_force.settings, self._fence.devices)
        apart = (*self._displays, *self._fence.divided)
        settings = displays.without(in_force.settings, apart)
        in_force = msgspec.structs.replace(in_force, settings=settings)
        if self._sees_the_host and self._stops:
            return in_force
        state = msgspec.structs.replace(in_force.state, may_stop=False)
        return msgspec.structs.replace(in_force, state=state)

    def _until_next(self, in_force: InForce) -> float:
        """Counted from the last look: an edge that has passed since then is due at once."""
        looked_at = self._looked_at or self.clock.now()
        edge = next_edge(
            in_force.grants, ladder=self._ladder, settings=in_force.settings, now=looked_at
        )
        steady_s = EVICTING_S if self._ladder.evicting else STEADY_S
        due = [looked_at + timedelta(seconds=steady_s), self._sample_due(in_force)]
        if edge is not None:
            due.append(edge)
        if in_force.hold and in_force.hold.until:
            due.append(in_force.hold.until)
        return max(0.0, (min(due) - self.clock.now()).total_seconds())

    def _sample_due(self, in_force: InForce) -> datetime:
        first = self._looked_at or self.clock.now()
        return self.heartbeat.due(sample_s=in_force.settings.sample_s, first=first)

    def _offer(self, samples: dict[str, Sample], in_force: InForce, now: datetime) -> None:
        """Makes these samples the next heartbeat."""
        self.heartbeat.offer(
            Samples(
                at=now,
                agent_version=VERSION,
                mode=in_force.settings.mode,
                clock_offset_s=self.clock.offset_s,
                health=tuple(self._problems(in_force))[:MAX_PROBLEMS],
                devices=tuple(samples.values()),
            )
        )

    def _plan_came(self) -> None:
        self.wake()
        self._post_link.nudge()

    def _heard(self, answer: SamplesAnswer) -> None:
        if answer.plan_etag != self.plans.etag:
            self._plan_link.nudge()
        if self.heartbeat.watch(answer.watched):
            self.wake()

    def _report(self, *reports: Report) -> None:
        if reports:
            self.spool.add(*reports)
            self._post_link.nudge()

    def _own_report(self, kind: ReportKind, text: str = "", *, device: str | None = None) -> Report:
        return Report(id=uuid4().hex, at=self.clock.now(), kind=kind, device=device, text=text)

    def _name_of(self, uid: int) -> str | None:
        stored = self.plans.stored
        known = stored.uids if stored else {}
        return next((name for name, one in known.items() if one == uid), None) or (
            self._names.name_of(uid, wait_s=NAME_WAIT_S)
        )

    def _problems(self, in_force: InForce) -> list[HealthProblem]:
        found = [*self.plans.problems(), *self._hands.problems(), *self._lookout.problems()]
        found += attention.problems(self._ladder)
        found += self._fence.problems()
        found += displays.problems(self._displays) + self._teller.problems()
        found += self._disk.problems()
        found += self._hand.problems(in_force)
        for link in self._links:
            found += link.problems()
        found += own_problems(
            clock=self.clock,
            as_of=in_force.state.as_of,
            sees_the_host=self._sees_the_host,
            vendor_trouble=self._fleet.problem,
            spool_full=self.spool.full,
        )
        return found

    def _status(self, sight: Sight, in_force: InForce, now: datetime) -> status.Status:
        return status.Status(
            host=self._config.host,
            at=now,
            mode=in_force.settings.mode,
            plan_as_of=in_force.state.as_of,
            clock_trusted=self.clock.trusted,
            may_stop=in_force.state.may_stop,
            grants=tuple(grant for grant in in_force.grants if grant.runs(now)),
            devices=status.of_devices(self._fence.devices, sight),
            ladder=self._ladder,
            reports_waiting=len(self.spool),
            health=tuple(self._problems(in_force)),
            hold=in_force.hold,
            yielded=tuple(sorted(in_force.yielded)),
            released_at=self._hand.said.released_at,
            by_hand_revision=self._hand.said.revision if self._fleet.has_let_go else 0,
        )


def _any_ended(in_force: InForce, since: datetime, until: datetime | None) -> bool:
    return until is not None and any(since < grant.end <= until for grant in in_force.grants)
