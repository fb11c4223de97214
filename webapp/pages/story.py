"""Tells the audit trail of a booking: one sentence for each entry, with its time."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop as noop

from reservations.models import AuditEntry
from webapp import walltime

Tone = Literal["good", "plain", "warn", "bad"]


@dataclass(frozen=True)
class Line:
    """``late``: how long after its due time; ``next``: what an operator should do about it."""

    at: datetime
    text: str
    tone: Tone
    why: str = ""
    late: str = ""
    next: str = ""


def told(entry: AuditEntry, *, zone: ZoneInfo) -> Line:
    text = _SENTENCES[entry.verb](_Facts(entry, zone)) if entry.verb in _SENTENCES else entry.verb
    return Line(
        at=entry.at,
        text=text,
        tone=_TONES.get(entry.verb, "plain"),
        why=entry.why,
        late=_latency(entry),
        next=_(_NEXT[entry.verb]) if entry.verb in _NEXT else "",
    )


class _Facts:
    """What sentences are made of."""

    def __init__(self, entry: AuditEntry, zone: ZoneInfo) -> None:
        self._entry = entry
        self._zone = zone
        self.after: Mapping[str, Any] = entry.after or {}
        self.before: Mapping[str, Any] = entry.before or {}

    @property
    def who(self) -> str:
        return self._entry.actor.name if self._entry.actor else self._entry.actor_label

    @property
    def why(self) -> str:
        return self._entry.why

    @property
    def where(self) -> str:
        device = self._entry.device
        return f"{device.name} ({device.host.name})" if device else _("the device")

    @property
    def person(self) -> str:
        return str(self.after.get("unix_name") or _("somebody"))

    @property
    def processes(self) -> str:
        pids = self.after.get("pids") or []
        return ", ".join(str(pid) for pid in pids[:8])

    def span(self, values: Mapping[str, Any]) -> str:
        start, end = _instant(values.get("start")), _instant(values.get("end"))
        return walltime.span_text(start, end, self._zone) if start and end else ""

    def instant(self, name: str) -> str:
        at = _instant(self.after.get(name))
        return walltime.moment_text(at, self._zone) if at else ""


def _instant(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _moved(facts: _Facts) -> str:
    before, after = facts.span(facts.before), facts.span(facts.after)
    if before and after and before != after:
        return _("%(who)s moved it from %(before)s to %(after)s.") % {
            "who": facts.who,
            "before": before,
            "after": after,
        }
    return _("%(who)s changed it.") % {"who": facts.who}


def _extended(facts: _Facts) -> str:
    return _("%(who)s extended it until %(end)s.") % {"who": facts.who, "end": facts.instant("end")}


def _host_changed(facts: _Facts) -> str:
    before, after = facts.before.get("mode"), facts.after.get("mode")
    if after and before != after:
        values = {"who": facts.who, "before": before, "after": after}
        return _("%(who)s switched it from %(before)s to %(after)s.") % values
    return _("%(who)s changed its settings.") % {"who": facts.who}


def _host_held(facts: _Facts) -> str:
    if until := facts.instant("until"):
        return _("%(who)s held the host until %(until)s.") % {"who": facts.who, "until": until}
    return _("%(who)s held the host.") % {"who": facts.who}


def _granted_by_hand(facts: _Facts) -> str:
    values = {"where": facts.where, "person": facts.person}
    # So the host says that what it gave is over.
    if facts.why.startswith("taken away"):
        return _("An administrator of the host took %(where)s from %(person)s again.") % values
    return _("An administrator of the host gave %(where)s to %(person)s.") % values


def _device_changed(facts: _Facts) -> str:
    values = {"who": facts.who, "where": facts.where, "manager": facts.after.get("managed_by")}
    if facts.after.get("bookable"):
        return _("%(who)s lets people book %(where)s.") % values
    return _("%(who)s lets nobody book %(where)s; it is managed by %(manager)s.") % values


def _sentence(text: str) -> Callable[[_Facts], str]:
    def sentence(facts: _Facts) -> str:
        values = {"who": facts.who, "person": facts.person, "where": facts.where}
        return _(text) % {**values, "pids": facts.processes}

    return sentence


_SENTENCES: dict[str, Callable[[_Facts], str]] = {
    "moved": _moved,
    "extended": _extended,
    "host_changed": _host_changed,
    "host_held": _host_held,
    "device_changed": _device_changed,
    "granted_by_hand": _granted_by_hand,
    **{
        verb: _sentence(text)
        for verb, text in {
            "booked": noop("%(who)s booked it."),
            "approved": noop("%(who)s approved it."),
            "rejected": noop("%(who)s rejected it."),
            "edited": noop("%(who)s changed its purpose."),
            "released": noop("%(who)s released it."),
            "cancelled": noop("%(who)s cancelled it."),
            "rebound": noop("%(who)s put it on other devices."),
            "flagged": noop("It cannot be kept as it is."),
            "started": noop("The slot began."),
            "ending": noop("It ends soon."),
            "ended": noop("The slot ended."),
            "opened": noop("%(where)s opened for %(person)s."),
            "delayed": noop("%(where)s is not open yet."),
            "early_signalled": noop(
                "%(person)s's processes on %(where)s were told that the end is near "
                "(SIGUSR1, pid %(pids)s)."
            ),
            "closed": noop("%(where)s closed."),
            "warned": noop("%(person)s was warned."),
            "intruder": noop("%(person)s used %(where)s without a booking (pid %(pids)s)."),
            "overrun": noop("%(person)s still used %(where)s after the end (pid %(pids)s)."),
            "signalled": noop("%(person)s's processes were asked to stop (SIGTERM, pid %(pids)s)."),
            "killed": noop("%(person)s's processes were ended by force (pid %(pids)s)."),
            "gone": noop("%(person)s's processes are gone from %(where)s."),
            "stuck": noop("A process on %(where)s could not be ended; it needs attention."),
            "no_account": noop("%(person)s is not known on the host; the device stays closed."),
            "overlap": noop("%(where)s is held by a booking that began earlier."),
            "grant_vanished": noop("It left the host's plan without an end; the host asks again."),
            "held": noop("The host is held: nothing is changed there."),
            "resumed": noop("The host acts again."),
            "yielded": noop("An administrator of the host has Berth leave %(where)s alone."),
            "taken_back": noop("Berth looks after %(where)s again."),
            "adopted": noop("An administrator of the host adopted what runs there."),
            "released_host": noop(
                "An administrator of the host has put every device back as it was."
            ),
            "drift": noop("Something changed who may open %(where)s; it was put right."),
            "drift_given_up": noop(
                "Something keeps changing who may open %(where)s; Berth leaves it."
            ),
            "hold_fire": noop("More people should be stopped at once than the kill budget allows."),
            "plan_refused": noop("The host could not use its new plan and keeps the old one."),
            "device_lost": noop("%(where)s is lost: the host no longer reaches it."),
            "device_back": noop("%(where)s is back."),
            "agent_started": noop("The agent started."),
            "host_added": noop("%(who)s added the host."),
            "host_resumed": noop("%(who)s let the host act again."),
            "host_silent": noop("The host fell silent."),
            "host_back": noop("The host is back."),
            "token_rotated": noop("%(who)s gave the host a new token."),
            "device_added": noop("The host named a new device: %(where)s."),
            "device_moved": noop("%(where)s turned up on this host."),
            "device_divided": noop("%(where)s was divided; its parts are booked instead."),
            "device_fine": noop("%(who)s marked %(where)s as fine."),
            "device_recovered": noop("What could not be ended on %(where)s is gone."),
            "retired": noop("%(who)s retired %(where)s."),
        }.items()
    },
}

_TONES: dict[str, Tone] = {
    "booked": "good",
    "opened": "good",
    "started": "good",
    "delayed": "warn",
    "warned": "warn",
    "ending": "warn",
    "intruder": "bad",
    "overrun": "bad",
    "signalled": "bad",
    "killed": "bad",
    "stuck": "bad",
    "no_account": "bad",
    "rejected": "bad",
    "flagged": "bad",
    "overlap": "bad",
    "grant_vanished": "warn",
    "granted_by_hand": "warn",
    "held": "warn",
    "host_held": "warn",
    "yielded": "warn",
    "released_host": "bad",
    "drift": "warn",
    "drift_given_up": "bad",
    "hold_fire": "bad",
    "plan_refused": "bad",
    "device_lost": "bad",
    "host_silent": "bad",
    "host_back": "good",
    "device_back": "good",
    "device_fine": "good",
    "device_recovered": "good",
}

# What an operator should do about it.
_NEXT: dict[str, str] = {
    "stuck": noop(
        "Look at the process on the host; a D state usually waits for the driver or a file server."
    ),
    "drift_given_up": noop(
        "Find what else sets the device's access (another tool, a udev rule); it is tried again now and then."
    ),
    "hold_fire": noop("Look at who is on the devices; raise the kill budget to have them stopped."),
    "plan_refused": noop("Read the agent's log; both sides must speak the same version."),
    "device_lost": noop("Look at the driver (nvidia-smi, dmesg) on the host."),
    "host_silent": noop("Look at its worker: berth-host status."),
    "released_host": noop("berth-host resume gives its devices back to Berth."),
    "yielded": noop("berth-host yield --back gives it back to Berth."),
    "held": noop(
        "A hold of this page ends with Resume; one by hand, with berth-host resume on the host."
    ),
}

# What is due when the slot begins; all else that has a latency is due when it ends.
_AT_START = {"opened", "delayed"}


def _latency(entry: AuditEntry) -> str:
    """How long after the slot's start or end it happened: the proof that it happened in time."""
    seconds = (entry.after or {}).get("latency_s")
    if not isinstance(seconds, int | float):
        return ""
    at_start = entry.verb in _AT_START
    if seconds < 1:
        text = _("%(count)d ms after the start") if at_start else _("%(count)d ms after the end")
        return text % {"count": round(seconds * 1000)}
    text = _("%(count).1f s after the start") if at_start else _("%(count).1f s after the end")
    return text % {"count": seconds}
