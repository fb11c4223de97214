"""The threads that talk with the control plane and list the devices: the agent's own waits for neither.

`PlanLink` keeps the plan fresh; `PostLink` brings inventory, samples and reports; `DeviceLink` asks the
driver. All go on for ever, whatever happens: an exchange that fails is an exchange to repeat.
"""

import logging
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import ClassVar

from reservations.core.wire import (
    MAX_REPORTS_PER_BATCH,
    MAX_TEXT,
    DeviceInfo,
    HealthProblem,
    Inventory,
    Report,
    Reports,
    ReportsAnswer,
    Samples,
    SamplesAnswer,
)
from workers.host.clock import HostClock
from workers.host.control_plane import (
    ControlPlane,
    ControlPlaneError,
    Garbage,
    Refused,
    Unreachable,
)
from workers.host.fleet import Fleet
from workers.host.plans import Plans
from workers.host.spool import Spool
from workers.host.version import VERSION

logger = logging.getLogger(__name__)

PLAN_EVERY_S = 60.0
# The server refuses to extend with less than 5 s left, so this fetch knows the end for good.
BEFORE_END = timedelta(seconds=3)
RETRY_S = 2.0
# Whoever forges nudges gets no more fetches out of a host than these.
NUDGE_GAP_S = 0.1
DEVICES_EVERY_S = 60.0
LIST_AGAIN_S = 60.0
# Answers that say something about the message itself, not about who sends it or when.
NEVER_ACCEPTED = frozenset({400, 413, 422})


class Link(ABC):
    """A thread that exchanges when it is due or nudged."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._trouble = ""

    def start(self) -> None:
        self._thread.start()

    def nudge(self) -> None:
        """Have it exchange at once."""
        self._wake.set()

    def stop(self) -> None:
        """Ends after the present exchange."""
        self._stopping.set()
        self._wake.set()

    def join(self, limit_s: float) -> None:
        if self._thread.is_alive():
            self._thread.join(limit_s)

    def problems(self) -> list[HealthProblem]:
        trouble = self._trouble
        return [HealthProblem(code=f"{self.name}_link", text=trouble[:MAX_TEXT])] if trouble else []

    @abstractmethod
    def exchange(self) -> float:
        """Does what is due and returns the seconds until the next.

        Raises:
            ControlPlaneError: it did not succeed; it is tried again after `RETRY_S`.
        """

    def _run(self) -> None:
        while not self._stopping.is_set():
            wait_s = self._exchange_safely()
            self._wake.wait(wait_s)
            self._wake.clear()

    def _exchange_safely(self) -> float:
        try:
            wait_s = self.exchange()
        except ControlPlaneError as error:
            self._note(str(error))
            return RETRY_S
        except Exception:
            logger.exception("link=%s", self.name)
            self._note("an unexpected fault; the log has it")
            return RETRY_S
        self._note("")
        return wait_s

    def _note(self, trouble: str) -> None:
        """One line when trouble begins or changes, one when it ends."""
        if trouble != self._trouble:
            self._trouble = trouble
            logger.warning("link=%s: %s", self.name, trouble or "works again")


class PlanLink(Link):
    """Fetches at least once a minute, when nudged, and shortly before every end."""

    name = "plan"

    def __init__(
        self,
        *,
        control_plane: ControlPlane,
        plans: Plans,
        clock: HostClock,
        on_change: Callable[[], None],
    ) -> None:
        super().__init__()
        self._control_plane = control_plane
        self._plans = plans
        self._clock = clock
        self._on_change = on_change
        self._nudged = threading.Event()
        self._fetch_at_s = 0.0
        self._fetched_at_s = -NUDGE_GAP_S

    def nudge(self) -> None:
        """Fetch at once."""
        self._nudged.set()
        super().nudge()

    def exchange(self) -> float:
        """A fetch, or only another try to name people if that is all that is due."""
        now_s = self._clock.boottime_s()
        due = self._nudged.is_set() or now_s >= self._fetch_at_s
        if due and now_s < self._fetched_at_s + NUDGE_GAP_S:
            return self._fetched_at_s + NUDGE_GAP_S - now_s
        # Cleared before the fetch: a nudge that comes during it is about something newer.
        self._nudged.clear()
        if not due:
            if self._plans.resolve():
                self._on_change()
        else:
            began = self._clock.now()
            self._fetched_at_s, self._fetch_at_s = now_s, now_s + RETRY_S
            self._plans.refresh(self._control_plane)
            self._fetch_at_s = self._clock.boottime_s() + self._until_next(began)
            self._on_change()
        wait_s = max(0.0, self._fetch_at_s - self._clock.boottime_s())
        return min(wait_s, 1.0) if self._plans.unresolved else wait_s

    def _until_next(self, began: datetime) -> float:
        ends = (grant.end for grant in self._plans.in_force().grants)
        return next_fetch_s(ends, began=began, now=self._clock.now())


def next_fetch_s(ends: Iterable[datetime], *, began: datetime, now: datetime) -> float:
    """Seconds from ``now`` to the next fetch, if the last one began at ``began``."""
    before_ends = (end - BEFORE_END for end in ends)
    first = min((instant for instant in before_ends if instant > began), default=None)
    if first is None:
        return PLAN_EVERY_S
    return min(PLAN_EVERY_S, max(0.0, (first - now).total_seconds()))


class PostLink(Link):
    """Sends the inventory when it changed, the newest samples, and waiting reports.

    Nothing is sent before a plan has called this host by its name: with another host's token, all of
    it would be told of that host. A refusal of one is no reason to keep back the others.
    """

    name = "post"

    def __init__(
        self,
        *,
        control_plane: ControlPlane,
        plans: Plans,
        fleet: Fleet,
        spool: Spool,
        samples: Callable[[], Samples | None],
        on_answer: Callable[[SamplesAnswer], None],
    ) -> None:
        super().__init__()
        self._control_plane = control_plane
        self._plans = plans
        self._fleet = fleet
        self._spool = spool
        self._samples = samples
        self._on_answer = on_answer
        self._listed: tuple[DeviceInfo, ...] = ()
        self._list_at = 0.0

    def exchange(self) -> float:
        """Everything that is there to send; `samples` hands each heartbeat out once."""
        if not self._plans.introduced:
            return RETRY_S
        refusal: ControlPlaneError | None = None
        for send in (self._send_inventory, self._send_samples, self._send_reports):
            try:
                send()
            except (Refused, Garbage) as error:
                refusal = error
        if refusal:
            raise refusal
        return PLAN_EVERY_S

    def _send_inventory(self) -> None:
        devices = self._fleet.devices
        if not devices or (devices is self._listed and time.monotonic() < self._list_at):
            return
        # Also after a refusal: somebody has to put it right first, which takes longer than a retry.
        self._listed, self._list_at = devices, time.monotonic() + LIST_AGAIN_S
        try:
            self._control_plane.put_inventory(Inventory(agent_version=VERSION, devices=devices))
        except Unreachable:
            self._listed = ()
            raise

    def _send_samples(self) -> None:
        if samples := self._samples():
            self._on_answer(self._control_plane.post_samples(samples))

    def _send_reports(self) -> None:
        """One report that cannot be accepted is found by halving, and does not hold up the rest."""
        size = MAX_REPORTS_PER_BATCH
        while batch := self._spool.oldest(size):
            try:
                answer = self._control_plane.post_reports(Reports(reports=batch))
            except Refused as error:
                if error.status not in NEVER_ACCEPTED:
                    raise
                size = max(1, len(batch) // 2)
                if len(batch) == 1:
                    logger.error("report=%s dropped: %s", batch[0], error)  # noqa: TRY400
                    self._spool.acknowledge({batch[0].id})
            else:
                self._settle(batch, answer)

    def _settle(self, batch: tuple[Report, ...], answer: ReportsAnswer) -> None:
        for rejected in answer.rejected:
            logger.error("report=%s was rejected: %s", rejected.id, rejected.code)
        settled = {*answer.stored, *(rejected.id for rejected in answer.rejected)}
        self._spool.acknowledge(settled)
        if settled.isdisjoint(report.id for report in batch):
            raise Garbage("reports: the answer names none of the reports sent")


class DeviceLink(Link):
    """Lists the devices again now and then. Its own thread: a driver may hang in it."""

    name = "devices"

    def __init__(self, *, fleet: Fleet, on_change: Callable[[], None]) -> None:
        super().__init__()
        self._fleet = fleet
        self._on_change = on_change

    def exchange(self) -> float:
        if self._fleet.refresh():
            self._on_change()
        return RETRY_S if self._fleet.problem else DEVICES_EVERY_S
