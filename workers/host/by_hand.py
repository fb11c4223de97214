"""What root on the host has said by hand: it counts at once, without the control plane, and is told later.

One small file holds all of it. The command line replaces it whole, the agent reads it when it has changed,
so either works without the other. Each act leaves its report beside it, for the agent to take.
"""

import contextlib
import fcntl
import logging
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import msgspec

from reservations.core.enforcement import HostGrant, Ladder, PlanState
from reservations.core.wire import MAX_TEXT, HealthProblem, Hold, Report, ReportKind, Shape
from workers.host.clock import HostClock
from workers.host.files import Damaged, open_lock, read_checked, set_aside, write_checked
from workers.host.plans import InForce

logger = logging.getLogger(__name__)

# As long as ended grants stay in a plan: who overstays one is no intruder.
REMEMBERED = timedelta(hours=24)
DAMAGED = "what root said by hand cannot be read; `berth-host resume` begins anew"


class ByHand(Shape, frozen=True, kw_only=True):
    """``revision`` counts the changes; an agent that shows it has obeyed. ``yielded`` are devices."""

    revision: int = 0
    grants: tuple[HostGrant, ...] = ()
    hold: Hold | None = None
    yielded: tuple[str, ...] = ()
    adopted_at: datetime | None = None
    released_at: datetime | None = None

    def with_grant(self, given: HostGrant) -> "ByHand":
        """One person at a time has a device by hand: who had it before has it until now."""
        kept = [one for one in self.grants if one.end > given.start - REMEMBERED]
        others = [_cut(one, given.start) if one.device == given.device else one for one in kept]
        new = [given] if given.end > given.start else []
        return msgspec.structs.replace(self, grants=(*others, *new))

    def with_yielded(self, device: str) -> "ByHand":
        return msgspec.structs.replace(self, yielded=tuple(sorted({*self.yielded, device})))

    def without_yielded(self, device: str) -> "ByHand":
        kept = tuple(one for one in self.yielded if one != device)
        return msgspec.structs.replace(self, yielded=kept)

    def hold_at(self, now: datetime) -> Hold | None:
        return self.hold if self.hold and self.hold.holds(now) else None


def _cut(grant: HostGrant, at: datetime) -> HostGrant:
    return msgspec.structs.replace(grant, end=min(grant.end, at))


def obeyed(in_force: InForce, said: ByHand, *, now: datetime) -> InForce:
    """The same with what root said: a released host is left, then a hold counts before everything."""
    if said.released_at is not None:
        settings = msgspec.structs.replace(in_force.settings, mode="observe", managed=(), hold=None)
        nothing = PlanState(as_of=now, may_stop=False)
        return InForce(grants=(), settings=settings, state=nothing)
    planned = in_force.settings.hold
    return msgspec.structs.replace(
        in_force,
        grants=(*in_force.grants, *said.grants),
        hold=said.hold_at(now) or (planned if planned and planned.holds(now) else None),
        yielded=frozenset(said.yielded),
    )


def adopted(ladder: Ladder, said: ByHand) -> Ladder:
    """Whatever ran when root said so counts as older than the switch to `enforce`."""
    since, at = ladder.enforcing_since, said.adopted_at
    if since is None or at is None or at <= since:
        return ladder
    return msgspec.structs.replace(ladder, enforcing_since=at)


def _problems(in_force: InForce, said: ByHand) -> list[HealthProblem]:
    found = []
    if said.released_at is not None:
        text = "root on the host has released it: no device is gated and nobody is stopped"
        found.append(HealthProblem(code="released_host", text=text))
    if in_force.hold:
        found.append(HealthProblem(code="held", text=held_in_words(in_force.hold)))
    for device in sorted(in_force.yielded):
        text = "root on the host has the agent leave this device alone; no device is read meanwhile"
        found.append(HealthProblem(code="yielded", text=text, device=device))
    return found


def held_in_words(hold: Hold) -> str:
    until = f"until {hold.until:%Y-%m-%d %H:%M} UTC" if hold.until else "until resumed"
    reason = f" ({hold.reason})" if hold.reason else ""
    return f"held {until}{reason}: no gate is changed and nobody is stopped"


class HoldWatch:
    """Tells when a hold begins or ends, unless root did that by hand: the command line tells of it then."""

    def __init__(self, clock: HostClock, *, report: Callable[[Report], None]) -> None:
        self._clock = clock
        self._report = report
        self._before: Hold | None = None
        self._by_hand = False

    def follow(self, hold: Hold | None, said: ByHand) -> bool:
        """True if a hold has just ended."""
        before, self._before = self._before, hold
        if hold == before:
            return False
        if hold is not None:
            self._by_hand = hold is said.hold
            if not self._by_hand:
                # The same words make the same id, so a restart during the hold repeats nothing.
                text = held_in_words(hold)
                self._tell("held", text, identity=sha256(text.encode()).hexdigest()[:32])
        elif not (self._by_hand and said.hold is None):
            self._tell("resumed", "the hold is over", identity=uuid4().hex)
        return hold is None

    def _tell(self, kind: ReportKind, text: str, *, identity: str) -> None:
        self._report(Report(id=identity, at=self._clock.now(), kind=kind, text=text[:MAX_TEXT]))


class HandFile:
    """The file and the reports beside it. Whoever changes it holds `changing`."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "by_hand.json"
        self._reports = folder / "by_hand.reports"

    def read(self) -> ByHand:
        """What stands in it; nothing where there is no file.

        Raises:
            Damaged: it does not add up.
        """
        return read_checked(self.path, ByHand) or ByHand()

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """One change at a time; waits for another that is under way."""
        with open_lock(self.path.with_name("by_hand.lock")) as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def write(self, said: ByHand, report: Report) -> ByHand:
        """The report first: what is in force must not go untold."""
        self._reports.mkdir(mode=0o700, exist_ok=True)
        write_checked(self._reports / f"{report.id}.json", report)
        new = msgspec.structs.replace(said, revision=said.revision + 1)
        write_checked(self.path, new)
        return new

    def begin_anew(self) -> None:
        """Sets a damaged file aside."""
        set_aside(self.path)

    def take_reports(self, keep: Callable[[Report], None]) -> None:
        """Hands each report over, in order, and removes it once it is kept."""
        found: list[tuple[Report, Path]] = []
        for path in self._reports.glob("*.json"):
            try:
                report = read_checked(path, Report)
            except Damaged:
                logger.exception("a report of what was done by hand is lost")
                set_aside(path)
            else:
                found += [(report, path)] if report else []
        for report, path in sorted(found, key=lambda one: one[0].at):
            keep(report)
            path.unlink(missing_ok=True)


class HandReader:
    """The agent's side: ``said`` is what counted at the last `look`."""

    def __init__(self, file: HandFile, *, report: Callable[[Report], None]) -> None:
        self._file = file
        self._report = report
        self._seen: tuple[int, int] | None = None
        self._known = False
        self._damaged = False
        self.said = ByHand()

    def look(self) -> None:
        """One stat while nothing has changed.

        A damaged file changes nothing; at a start, when nothing is known, it holds the host.
        """
        stamp = self._stamp()
        if stamp != self._seen:
            self._seen = stamp
            self._read()
            self._file.take_reports(self._report)

    def problems(self, in_force: InForce) -> list[HealthProblem]:
        """What an administrator should know of it, in plain sentences."""
        damaged = [HealthProblem(code="by_hand_damaged", text=DAMAGED)] if self._damaged else []
        return [*damaged, *_problems(in_force, self.said)]

    def _read(self) -> None:
        try:
            self.said = self._file.read()
        except Damaged as error:
            logger.error("%s (%s)", DAMAGED, error)  # noqa: TRY400 -- the text says it all
            self._damaged = True
            if not self._known:
                self.said = ByHand(hold=Hold(reason=DAMAGED))
        else:
            self._damaged, self._known = False, True

    def _stamp(self) -> tuple[int, int]:
        try:
            found = os.stat(self._file.path)
        except FileNotFoundError:
            return (0, 0)
        return (found.st_ino, found.st_mtime_ns)
