"""The plan that the agent enforces: which answer of the control plane becomes it, and who is who in it.

An answer that is not plainly newer and ours changes nothing. A grant never disappears on one answer's
word alone: whoever uses a device now keeps it until a second plan agrees.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import uuid4

import msgspec

from reservations.core.enforcement import HostGrant, PlanState
from reservations.core.leases import Leases, endless, leases
from reservations.core.wire import (
    ACCEPTED_VERSIONS,
    MAX_TEXT,
    Grant,
    HealthProblem,
    Hold,
    HostSettings,
    Plan,
    Report,
    ReportKind,
)
from workers.host.clock import HostClock
from workers.host.config import LocalLimits
from workers.host.control_plane import ControlPlane, Garbage, Unchanged
from workers.host.disk import Disk
from workers.host.names import Names
from workers.host.plan_store import KeptGrant, PlanStore, StoredPlan, Unreadable

logger = logging.getLogger(__name__)

# A grant that vanished is let go when a plan at least this much later agrees.
SECOND_OPINION = timedelta(seconds=60)
# The database's clock and the web server's may differ by this much.
MAX_CLOCK_SPREAD = timedelta(seconds=60)
DOUBTS = "the server's clock has jumped; its plans count once it has stayed there for 5 minutes"
# How long one fetch waits for names; slower ones are picked up afterwards.
NAMES_WAIT_S = 2.0
# ... and how long it waits to hear that those which had a uid before still have it.
KNOWN_NAMES_WAIT_S = 0.25


class InForce(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent acts on in one tick.

    During a ``hold`` nothing is changed and nobody stopped. ``yielded`` devices are not even looked at.
    """

    grants: tuple[HostGrant, ...]
    settings: HostSettings
    state: PlanState
    hold: Hold | None = None
    yielded: frozenset[str] = frozenset()

    def leases(self, now: datetime) -> Leases:
        """Without an end where gates are to stay as they are."""
        complete_until = self.state.complete_until
        if self.hold or (complete_until is not None and now >= complete_until):
            return endless(self.grants)
        return leases(self.grants, always_open=self.settings.always_open_uids, now=now)


class Plans:
    """Fetches, judges, keeps. `refresh` is for one thread; everything else for any."""

    def __init__(
        self,
        *,
        host: str,
        store: PlanStore,
        clock: HostClock,
        names: Names,
        local: LocalLimits,
        report: Callable[[Report], None],
    ) -> None:
        self._host = host
        self._store = store
        self._clock = clock
        self._names = names
        self._local = local
        self._report = report
        self._lock = threading.Lock()
        self._refused = ""
        self._reported: set[str] = set()
        self._unknown: set[str] = set()
        self._corrupt = False
        self._disk = Disk()
        self._stored: StoredPlan | None = None
        # Whether the control plane has called us by our name since this process started.
        self.introduced = False
        self._load()

    @property
    def etag(self) -> str | None:
        return self._stored.plan.etag if self._stored else None

    @property
    def stored(self) -> StoredPlan | None:
        return self._stored

    @property
    def unresolved(self) -> bool:
        """Whether the plan names people whom this host cannot name yet."""
        stored = self._stored
        return stored is not None and bool(_names(stored) - stored.uids.keys() - self._unknown)

    def in_force(self) -> InForce:
        """The grants, settings and trust of this moment."""
        stored = self._stored
        # After a reboot the wall clock is all there is; before the fetch it cannot be right.
        if stored is None or (not self._clock.trusted and self._clock.now() < stored.fetched_at):
            state = PlanState(as_of=None, may_stop=False)
            return InForce(grants=(), settings=HostSettings(), state=state)
        return InForce(
            grants=tuple(_host_grants(stored)),
            settings=self._local.tighten(stored.plan.settings),
            state=PlanState(
                as_of=stored.as_of,
                complete_until=stored.plan.complete_until,
                may_stop=stored.anchor.boot_id == self._clock.boot_id,
            ),
        )

    def problems(self) -> list[HealthProblem]:
        found = []
        if self._refused:
            found.append(HealthProblem(code="plan_refused", text=self._refused[:MAX_TEXT]))
        if self._corrupt:
            text = "the stored plan was damaged; devices are closed until a plan is fetched"
            found.append(HealthProblem(code="plan_corrupt", text=text))
        found += self._disk.problems()
        stored = self._stored
        until = stored.plan.complete_until if stored else None
        if until and self._clock.now() >= until:
            text = "the stored plan is past the instant up to which it is complete"
            found.append(HealthProblem(code="plan_incomplete", text=text))
        return found

    def refresh(self, control_plane: ControlPlane) -> bool:
        """Asks for the plan once; True if what is enforced may have changed.

        The first time for a whole one, which names its host: with another host's token, "nothing has
        changed" could be about that host.

        Raises:
            ControlPlaneError: there was no usable answer; the stored plan stands.
        """
        sent_s = self._clock.boottime_s()
        try:
            answer = control_plane.fetch_plan(self.etag if self.introduced else None)
        except Garbage as error:
            self._refuse(str(error))
            raise
        received_s = self._clock.boottime_s()
        doubts = self._clock.doubts(answer.server_time, sent_s=sent_s, received_s=received_s)
        if reason := DOUBTS if doubts else self._objection(answer):
            self._refuse(reason)
            raise Garbage(reason)
        self._clock.adjust(answer.server_time, sent_s=sent_s, received_s=received_s)
        self._refused = ""
        self._accept(answer)
        self.introduced = True
        return True

    def resolve(self) -> bool:
        """Tries again to name people; True if somebody was."""
        stored = self._stored
        if stored is None:
            return False
        uids = self._uids(stored, only_unknown=True)
        if uids == stored.uids:
            return False
        self._keep(msgspec.structs.replace(stored, uids=uids))
        return True

    def _load(self) -> None:
        try:
            self._stored = self._store.load_plan()
        except Unreadable:
            self._corrupt = True
        if self._stored:
            self._clock.restore(self._stored.anchor)

    def _objection(self, answer: Plan | Unchanged) -> str | None:
        """Why this answer cannot become the plan, or None."""
        stored = self._stored
        if abs(answer.as_of - answer.server_time) > MAX_CLOCK_SPREAD:
            return "the plan's instant and the server's clock are far apart"
        if isinstance(answer, Unchanged):
            if stored is None:
                return "told that nothing changed, but there is no plan yet"
            older = self._is_older(answer, stored)
        else:
            if answer.wire not in ACCEPTED_VERSIONS:
                return f"plan of wire version {answer.wire}"
            if answer.host != self._host:
                return f"plan of another host: {answer.host}"
            same_epoch = stored is not None and answer.epoch == stored.plan.epoch
            older = stored is not None and same_epoch and self._is_older(answer, stored)
        return "plan older than the stored one" if older else None

    def _is_older(self, answer: Plan | Unchanged, stored: StoredPlan) -> bool:
        """What was stored while the server's clock was ahead, as it is believed by now, is not the newer."""
        from_ahead = stored.as_of > answer.server_time + MAX_CLOCK_SPREAD
        return answer.as_of < stored.as_of and not (from_ahead and self._clock.trusted)

    def _accept(self, answer: Plan | Unchanged) -> None:
        stored = self._stored
        now = self._clock.now()
        anchor = self._clock.anchor
        plan = _plan_of(answer, stored)
        if anchor is None or plan is None:
            raise Garbage("told that nothing changed, but there is no plan yet")
        fresh = StoredPlan(
            plan=plan,
            as_of=answer.as_of,
            fetched_at=now,
            anchor=anchor,
            uids=stored.uids if stored else {},
            kept=tuple(kept_grants(stored, plan, now=now, as_of=answer.as_of)) if stored else (),
        )
        uids = self._uids(fresh, only_unknown=isinstance(answer, Unchanged))
        for kept in fresh.kept:
            self._report_vanished(kept)
        self._keep(msgspec.structs.replace(fresh, uids=uids))
        self._corrupt = False

    def _keep(self, stored: StoredPlan) -> None:
        with self._lock:
            # Also where it cannot be kept on disk: what it says holds.
            self._stored = stored
            with self._disk.keeping("the plan"):
                self._store.save_plan(stored)

    def _uids(self, stored: StoredPlan, *, only_unknown: bool) -> dict[str, int]:
        """Who the plan's names are. A name that was known stays known when it cannot be looked up."""
        wanted = _names(stored)
        known = {name: uid for name, uid in stored.uids.items() if name in wanted}
        answers = self._names.uids_of(wanted - known.keys(), wait_s=NAMES_WAIT_S)
        if not only_unknown:
            # Only a name that is somebody else's by now would change anything: that may wait.
            answers |= self._names.uids_of(known, wait_s=KNOWN_NAMES_WAIT_S)
        known.update((name, uid) for name, uid in answers.items() if uid is not None)
        self._unknown = {name for name in answers if name not in known}
        self._report_strangers(stored, known)
        return known

    def _report_strangers(self, stored: StoredPlan, known: dict[str, int]) -> None:
        for grant in stored.grants:
            if grant.end <= stored.as_of:
                continue
            if grant.unix_name in self._unknown:
                self._report_once(grant, "no_account", f"{grant.unix_name} is unknown on this host")
            elif reason := _mismatch(grant, known.get(grant.unix_name)):
                self._report_once(grant, "no_account", reason)

    def _report_vanished(self, kept: KeptGrant) -> None:
        text = "a running grant left the plan without an end; kept until a second plan agrees"
        self._report_once(kept.grant, "grant_vanished", text)

    def _report_once(self, grant: Grant, kind: ReportKind, text: str) -> None:
        """The same words about the same grant make the same id, so a restart repeats nothing."""
        key = f"{kind}|{grant.booking}|{grant.device}|{grant.unix_name}|{grant.start}|{text}"
        identity = sha256(key.encode()).hexdigest()[:32]
        if identity in self._reported:
            return
        self._reported.add(identity)
        self._report(
            Report(
                id=identity,
                at=self._clock.now(),
                kind=kind,
                device=grant.device,
                booking=grant.booking,
                unix_name=grant.unix_name,
                text=text,
            )
        )

    def _refuse(self, reason: str) -> None:
        """Reported when the reason is new, not at every attempt."""
        if reason == self._refused:
            return
        self._refused = reason
        logger.error("plan refused host=%s: %s", self._host, reason)
        self._report(
            Report(
                id=uuid4().hex, at=self._clock.now(), kind="plan_refused", text=reason[:MAX_TEXT]
            )
        )


def _plan_of(answer: Plan | Unchanged, stored: StoredPlan | None) -> Plan | None:
    if isinstance(answer, Plan):
        return answer
    return stored.plan if stored else None


def kept_grants(
    stored: StoredPlan, plan: Plan, *, now: datetime, as_of: datetime
) -> Iterable[KeptGrant]:
    """The running grants of the stored plan that the new one has dropped without an end.

    A booking that was cancelled, or has got other devices in exchange, explains what is missing.
    """
    present = {_key(grant) for grant in plan.grants}
    explained = frozenset(plan.cancelled) | _moved(stored, plan)
    since = {_key(kept.grant): kept.missing_since for kept in stored.kept}
    for grant in stored.grants:
        running = grant.start <= now < grant.end
        missing_since = since.get(_key(grant), as_of)
        agreed = as_of - missing_since >= SECOND_OPINION
        dropped = _key(grant) not in present and grant.booking not in explained
        if running and dropped and not agreed:
            yield KeptGrant(grant=grant, missing_since=missing_since)


def _moved(stored: StoredPlan, plan: Plan) -> set[int]:
    """Bookings that have a device in the new plan which they did not have in the stored one."""
    had = {(grant.booking, grant.device) for grant in stored.grants}
    known = {booking for booking, _ in had}
    has = {(grant.booking, grant.device) for grant in plan.grants}
    return {booking for booking, _ in has - had} & known


def _key(grant: Grant) -> tuple[int, str, str]:
    return grant.booking, grant.device, grant.unix_name


def _names(stored: StoredPlan) -> set[str]:
    return {grant.unix_name for grant in stored.grants}


def _mismatch(grant: Grant, uid: int | None) -> str | None:
    """Why this uid must not get the grant, or None."""
    if uid == 0:
        return f"{grant.unix_name} is root on this host"
    if uid is not None and grant.expected_uid not in {None, uid}:
        return f"{grant.unix_name} is uid {uid} here, not {grant.expected_uid}"
    return None


def _host_grants(stored: StoredPlan) -> Iterable[HostGrant]:
    for grant in stored.grants:
        uid = stored.uids.get(grant.unix_name)
        if uid is not None and not _mismatch(grant, uid):
            yield HostGrant(
                booking=grant.booking,
                device=grant.device,
                uid=uid,
                unix_name=grant.unix_name,
                start=grant.start,
                end=grant.end,
                early_signal=grant.early_signal,
                keep_if_free=grant.keep_if_free,
            )
