"""How a host is, in the words of the manage page: one sentence for each thing that an operator should know."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from django.utils.translation import gettext as _

from reservations.core.wire import MAX_SKEW_S
from reservations.models import Device, Host, HostHold, HostStatus
from webapp import walltime

# From the mildest to the strictest.
_MODES = list(Host.Mode.values)
Tone = Literal["free", "busy", "idle", "bad", "unknown"]


@dataclass(frozen=True)
class HostState:
    """``verdicts`` are the live verdicts by UUID, as far as there are any."""

    host: Host
    status: HostStatus | None
    hold: HostHold | None
    devices: list[Device]
    verdicts: dict[str, dict[str, Any]]
    now: datetime

    @property
    def heard(self) -> bool:
        return self.status is not None and self.status.last_seen is not None

    @property
    def silent(self) -> bool:
        return self.status is not None and self.status.silent_since is not None

    @property
    def chip(self) -> tuple[Tone, str]:
        if not self.heard:
            return "unknown", _("Never heard of")
        if self.silent:
            return "bad", _("Silent")
        if self.hold is not None:
            return "idle", _("Held")
        if self.problems or self.in_need:
            return "idle", _("Needs a look")
        return "free", _("Fine")

    @property
    def last_heard(self) -> str:
        if self.status is None or self.status.last_seen is None:
            return _("never")
        return ago(self.now - self.status.last_seen)

    @property
    def acts_otherwise(self) -> bool:
        return self.heard and bool(self.status and self.status.mode not in ("", self.host.mode))

    @property
    def in_need(self) -> list[Device]:
        return [one for one in self.devices if one.state == Device.State.NEEDS_ATTENTION]

    @property
    def clock(self) -> str:
        offset_s = self.status.clock_offset_s if self.status else None
        return _("not known") if offset_s is None else f"{offset_s:+.3f} s"

    @property
    def problems(self) -> list[str]:
        return list(self._problems())

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [{"device": one, "verdict": self.verdicts.get(one.uuid)} for one in self.devices]

    def _says_hold(self, problem: Mapping[str, Any]) -> bool:
        """Whether the agent only says that it obeys this hold; one by hand has another reason."""
        if self.hold is None or problem.get("code") != "held":
            return False
        return f"({self.hold.reason})" in problem["text"]

    def _problems(self) -> Iterator[str]:
        status = self.status
        if status is None or not self.heard:
            yield _("No agent has ever called from here. Start its worker: berth-host run.")
            return
        if status.silent_since is not None:
            yield _(
                "It has been silent for %(time)s. It goes on with its stored plan, but nobody can see that. "
                "Look at its worker: berth-host status."
            ) % {"time": walltime.duration_text(self.now - status.silent_since)}
        if self.acts_otherwise:
            text = _(
                "You ask for %(asked)s, its agent acts in %(mode)s: it has not fetched its plan yet."
            )
            if _MODES.index(status.mode) < _MODES.index(self.host.mode):
                text = _(
                    "You ask for %(asked)s, its agent acts in %(mode)s: it has not fetched its plan yet, or a "
                    "file on the host allows no more."
                )
            yield text % {"asked": self.host.mode, "mode": status.mode}
        if status.clock_offset_s is not None and abs(status.clock_offset_s) > MAX_SKEW_S:
            yield _("Its clock is %(offset)s off. Berth goes by the server's; set up NTP.") % {
                "offset": f"{status.clock_offset_s:+.1f} s"
            }
        names = {one.uuid: one.name for one in self.devices}
        for problem in status.health:
            if self._says_hold(problem):
                continue  # Its own note says so, in the reader's time.
            where = names.get(problem.get("device", ""), problem.get("device", ""))
            yield f"{where}: {problem['text']}" if where else str(problem["text"])


def ago(span: timedelta) -> str:
    """``12 s ago``, ``5 min ago``."""
    seconds = max(0, round(span.total_seconds()))
    if seconds < 120:
        return _("%(count)d s ago") % {"count": seconds}
    return _("%(time)s ago") % {"time": walltime.duration_text(span)}
