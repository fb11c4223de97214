"""Compare what a host should allow with what it does allow.

Level-triggered: the answer depends on the two states and the clock alone, never on what woke us.
Gates close before anybody is signalled, ends come before starts, and doubt stops nobody.
"""

from collections.abc import Sequence
from datetime import datetime

from reservations.core.enforcement import Decision, HostGrant, Ladder, Observed, PlanState
from reservations.core.wire import HostSettings


def plan_actions(
    grants: Sequence[HostGrant],
    observed: Observed,
    *,
    ladder: Ladder,
    now: datetime,
    settings: HostSettings,
    plan: PlanState,
) -> Decision:
    """What brings ``observed`` to what ``grants`` say at ``now``.

    ``grants`` include those that ended within the last 24 h: they tell an overrun from an intruder.
    Do the actions in order, spool each one's facts once it is done, then store the ladder.
    """
    return Decision(ladder=ladder)


def next_edge(
    grants: Sequence[HostGrant], *, ladder: Ladder, settings: HostSettings, now: datetime
) -> datetime | None:
    """The first instant after ``now`` at which the answer may change by time alone."""
    return min((edge for g in grants for edge in (g.start, g.end) if edge > now), default=None)
