"""Leading one party off one device: seen, warned, signalled, killed, gone or stuck.

A step is only taken on what was seen in this look. The rung says how far it went, so that a restart goes on
from there. What somebody's presence is, `judging.py` decides; whom a signal may reach, `stopping.py`.
"""

from datetime import datetime

import msgspec

from reservations.core.enforcement import Action, Rung, Tell
from reservations.core.judging import Case, Judgement, judged, unadopted
from reservations.core.stopping import ask, fact, kill, may_signal, to_be_stopped, topmost


def step(case: Case) -> tuple[Rung | None, list[Action]]:
    """The party's rung after this look, and what to do. No rung: nothing is held against them."""
    rung = _begun(case)
    if rung is None:
        return None, []
    rung = msgspec.structs.replace(rung, pids=case.pids)
    actions: list[Action] = []
    if case.rung is None or case.rung.kind != rung.kind:
        actions += _noticed(rung)
    rung, warned = _warn(case, rung)
    rung, asked = ask(case, rung)
    rung, killed = kill(case, rung)
    return rung, [*actions, *warned, *asked, *killed]


def gone(rung: Rung) -> list[Action]:
    """What is told when a look no longer sees the party on the device."""
    if rung.kind == "walk_up" and rung.signalled_at is None:
        return []
    return [Tell(facts=(fact("gone", rung),))]


def is_due_without_an_end(case: Case) -> bool:
    """Whether the party would be signalled for the first time, with no end of theirs that says so."""
    rung = _begun(case)
    if rung is None or rung.kind != "intruder" or rung.signalled_at is not None:
        return False
    return may_signal(case, rung) and bool(topmost(unadopted(case, rung.kind)))


def pids_to_stop(case: Case) -> tuple[int, ...]:
    """All that this look may end on the device."""
    rung = _begun(case)
    return () if rung is None else to_be_stopped(case, rung)


def _begun(case: Case) -> Rung | None:
    """The rung to go on from; a new one when the party is first seen without a right."""
    judgement = judged(case)
    old = case.rung
    if old is not None and (old.signalled_at is not None or _still(old, judgement)):
        return old
    if judgement is None or not case.plan.may_stop:
        return None if old and old.kind == "walk_up" else old
    return Rung(
        device=case.rights.device,
        uid=case.party.uid,
        container=case.party.container,
        kind=judgement.kind,
        since=case.now,
        edge=judgement.edge,
        booking=judgement.booking,
        warned_at=old.warned_at if old else None,
    )


def _still(old: Rung, judgement: Judgement | None) -> bool:
    """Whether it is the same matter; a walk-up's is the one booking that draws near."""
    if judgement is None or old.kind != judgement.kind:
        return False
    return old.kind != "walk_up" or old.edge == judgement.edge


def _noticed(rung: Rung) -> list[Action]:
    if rung.kind == "walk_up":
        return []
    text = f"container {rung.container[:12]}, which belongs to no booking" if rung.container else ""
    return [Tell(facts=(fact(rung.kind, rung, text=text),))]


def _warn(case: Case, rung: Rung) -> tuple[Rung, list[Action]]:
    """Once: that they have no grant, or that a walk-up ends. An overrun is signalled, not warned."""
    if (
        case.settings.mode == "observe"
        or rung.warned_at is not None
        or not _is_worth_a_warning(case, rung)
    ):
        return rung, []
    text = _warning(case, rung)
    warned = msgspec.structs.replace(rung, warned_at=case.now)
    return warned, [Tell(facts=(fact("warned", rung, text=text),))]


def _is_worth_a_warning(case: Case, rung: Rung) -> bool:
    if case.party.container is not None and case.settings.unattributed_containers == "report":
        return False
    return not (rung.kind == "overrun" and case.settings.mode == "enforce")


def _warning(case: Case, rung: Rung) -> str:
    if rung.kind == "walk_up":
        return f"booked by somebody else from {_spoken(rung.edge)}"
    if rung.kind == "overrun":
        return "the booking has ended"
    if case.tolerated or not unadopted(case, rung.kind):
        return "not booked; it may stay until somebody books the device"
    if case.settings.mode == "enforce":
        return f"not booked; to be ended in {case.settings.intruder_grace_s:.0f} s"
    return "not booked"


def _spoken(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC" if instant else "now on"
