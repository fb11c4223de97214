"""What a device's use means, in one verdict: the chip that people see.

Unknown is its own verdict: what could not be read is neither free nor misused.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from reservations.core.wire import ProcessUse, Sample

Code = Literal[
    "free",
    "in_use",
    "idle",
    "unbooked_use",
    "foreign_use",
    "no_data",
    "lost",
    "needs_attention",
]

# A reading older than this says nothing about now: three heartbeats of 10 s and a little.
FRESH = timedelta(seconds=35)
# A booked device counts as idle once nothing has happened on it for this long.
IDLE_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Condition:
    """The device itself: ok, lost, needs_attention or retired, and since when."""

    state: str = "ok"
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """The booking that holds the device now. ``unix_names`` are all who may use it."""

    owner: str
    start: datetime
    unix_names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """``who`` are the people it is about; ``since`` when it began, where that is known."""

    code: Code
    text: str
    since: datetime | None = None
    who: tuple[str, ...] = ()


def judge(
    condition: Condition,
    sample: Sample | None,
    *,
    held: Held | None,
    now: datetime,
    ignored_uids: frozenset[int] = frozenset({0}),
    called: Callable[[str], str] = str,
) -> Verdict:
    """The verdict on one device at ``now``.

    Processes of ``ignored_uids`` (the system's own) are nobody's use. ``called`` says how people
    are to be named, given a Unix name.
    """
    if condition.state == "lost" or (sample is not None and sample.health == "lost"):
        return Verdict("lost", "Lost: the host no longer reaches it", condition.since)
    if condition.state == "needs_attention":
        return Verdict("needs_attention", "Needs an administrator's attention", condition.since)
    if sample is None or sample.health != "ok" or now - sample.at > FRESH:
        return _no_data(sample, now)
    if sample.haunted:
        return Verdict("needs_attention", "In use, though nobody is on it: needs attention")
    if sample.processes is None:
        return Verdict("no_data", "Who uses it cannot be read", sample.at)
    users = [one for one in sample.processes if one.uid not in ignored_uids]
    if held is None:
        return _judge_unbooked(users, called)
    # A process whose person could not be named accuses nobody.
    foreign = [one for one in users if one.unix_name and one.unix_name not in held.unix_names]
    if foreign:
        who = _names(foreign, called)
        return Verdict("foreign_use", f"Used{_by(who)}, booked by {held.owner}", who=who)
    return _judge_idleness(users, sample=sample, held=held, now=now)


def _no_data(sample: Sample | None, now: datetime) -> Verdict:
    if sample is None:
        return Verdict("no_data", "No data yet")
    return Verdict("no_data", f"No data for {_spoken(now - sample.at)}", sample.at)


def _judge_unbooked(users: list[ProcessUse], called: Callable[[str], str]) -> Verdict:
    if not users:
        return Verdict("free", "Free")
    who = _names(users, called)
    return Verdict("unbooked_use", f"Used without a booking{_by(who)}", who=who)


def _judge_idleness(
    users: list[ProcessUse], *, sample: Sample, held: Held, now: datetime
) -> Verdict:
    since = max(held.start, sample.last_busy) if sample.last_busy else held.start
    idle_for = now - since
    who = (held.owner,)
    # Of the parts of a divided GPU nobody knows how busy they are.
    unknown = sample.utilization_percent is None
    if users and (unknown or idle_for < IDLE_AFTER):
        return Verdict("in_use", f"In use by {held.owner}", held.start, who)
    if users:
        text = f"Booked by {held.owner}, memory held, 0 % compute for {_spoken(idle_for)}"
    else:
        text = f"Booked by {held.owner}, idle {_spoken(idle_for)}"
    return Verdict("idle", text, since, who)


def _names(users: list[ProcessUse], called: Callable[[str], str]) -> tuple[str, ...]:
    return tuple(sorted({called(one.unix_name) for one in users if one.unix_name}))


def _by(who: tuple[str, ...]) -> str:
    return f" by {', '.join(who)}" if who else ""


def _spoken(span: timedelta) -> str:
    minutes = max(0, int(span.total_seconds() // 60))
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h" if hours < 48 else f"{hours // 24} days"
