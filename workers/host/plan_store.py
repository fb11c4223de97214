"""What a host keeps on disk, so that it goes on enforcing alone: the plan and the ladder.

Each file is one line of checksum and one of JSON, replaced whole. A file that does not add up is set
aside, never half believed. The ladder has a file of its own: with the plan lost, it still says which
devices are to be closed.
"""

import logging
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from reservations.core.enforcement import Ladder
from reservations.core.wire import Grant, Plan, Report, Shape
from workers.host.clock import Anchor
from workers.host.files import Damaged, read_checked, set_aside, write_checked

logger = logging.getLogger(__name__)

FORMAT = 1
T = TypeVar("T")


class KeptGrant(Shape, frozen=True, kw_only=True):
    """A running grant that left the plan without an end; kept until a later plan agrees."""

    grant: Grant
    missing_since: datetime


class StoredPlan(Shape, frozen=True, kw_only=True):
    """The last accepted plan and what this host knew when it came.

    ``as_of`` is the newest instant at which the control plane said it still stands; ``uids`` are the
    people that could be named here. ``anchor`` is the clock's, of the boot in which it was fetched.
    """

    format: int = FORMAT
    plan: Plan
    as_of: datetime
    fetched_at: datetime
    anchor: Anchor
    uids: dict[str, int] = {}
    kept: tuple[KeptGrant, ...] = ()

    @property
    def grants(self) -> tuple[Grant, ...]:
        return (*self.plan.grants, *(kept.grant for kept in self.kept))


class StoredLadder(Shape, frozen=True, kw_only=True):
    """The ladder, and the reports of what it remembers as done.

    One file, so that a crash cannot keep the one and lose the other: done again under another id, or
    done and never told. The reports go to the spool next; sent twice, they are stored once.
    """

    boot_id: str
    ladder: Ladder = Ladder()
    reports: tuple[Report, ...] = ()


class Unreadable(RuntimeError):
    """The file was there and could not be used; it has been set aside."""


class PlanStore:
    """The files of one host, in one folder. One process at a time (the agent's lock sees to that)."""

    def __init__(self, folder: Path) -> None:
        self._plan = folder / "plan.json"
        self._ladder = folder / "ladder.json"

    def load_plan(self) -> StoredPlan | None:
        """The stored plan, or None if there is none yet.

        Raises:
            Unreadable: it was damaged.
        """
        return _load(self._plan, StoredPlan)

    def peek_plan(self) -> StoredPlan | None:
        """The same for whoever only wants to look: a damaged file stays where it is, and counts as none."""
        try:
            return read_checked(self._plan, StoredPlan)
        except Damaged:
            return None

    def save_plan(self, stored: StoredPlan) -> None:
        write_checked(self._plan, stored)

    def load_ladder(self, boot_id: str) -> StoredLadder:
        """Without pids if it is of another boot; empty if damaged (everybody's grace begins anew)."""
        try:
            stored = _load(self._ladder, StoredLadder) or StoredLadder(boot_id=boot_id)
        except Unreadable:
            return StoredLadder(boot_id=boot_id)
        if stored.boot_id == boot_id:
            return stored
        after = stored.ladder.after_reboot()
        return StoredLadder(boot_id=boot_id, ladder=after, reports=stored.reports)

    def save_ladder(self, stored: StoredLadder) -> None:
        write_checked(self._ladder, stored)


def _load(path: Path, shape: type[T]) -> T | None:
    try:
        return read_checked(path, shape)
    except Damaged as error:
        logger.error("file=%s cannot be used (%s); set aside", path, error)  # noqa: TRY400
        set_aside(path)
        raise Unreadable(str(error)) from error
