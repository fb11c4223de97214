"""What people on a host are told, in words: who, what, until when, and what to do next."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from reservations.core.endings import Ending
from reservations.core.wire import DeviceInfo, HostSettings, Report, ReportKind
from workers.host.spans import spoken

MAX_PIDS_SHOWN = 8
# Of several things that happen to somebody on one device at once, the last is told.
_MATTERS: tuple[ReportKind, ...] = ("overrun", "warned", "signalled", "killed")


@dataclass(frozen=True, slots=True)
class Message:
    """Lines for every terminal of one person."""

    uid: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """What every message of a host draws on. ``url`` is where people find Berth."""

    host: str
    url: str
    devices: Mapping[str, DeviceInfo]
    settings: HostSettings

    def page(self, booking: int | None) -> str:
        return f"{self.url}/bookings/{booking}/" if booking else f"{self.url}/"

    def named(self, uuids: Iterable[str]) -> str:
        """Such as "GPU 0 and 1 on gpu-01"."""
        known = [self.devices[uuid].index for uuid in uuids if uuid in self.devices]
        numbers = [str(index) for index in sorted(set(known))]
        listed = " and ".join([", ".join(numbers[:-1]), *numbers[-1:]] if numbers[1:] else numbers)
        return f"GPU {listed or '?'} on {self.host}"


def of_ending(ending: Ending, words: Words, *, now: datetime) -> Message:
    what = "booking" if ending.booking else "time"
    end = ending.end.astimezone()
    shown = f"{end:%H:%M}" if ending.end - now < timedelta(hours=12) else f"{end:%a %d %b, %H:%M}"
    return Message(
        ending.uid,
        (
            f"Berth: your {what} of {words.named(ending.devices)} ends at {shown}, "
            f"in {spoken(ending.end - now)}.",
            f"Save your work, or extend it: {words.page(ending.booking)}",
        ),
    )


def of_reports(reports: Sequence[Report], words: Words) -> list[Message]:
    """For the people whom these reports are about; the devices of one booking together."""
    together: defaultdict[tuple[ReportKind, int | None, int, str], list[Report]] = defaultdict(list)
    for report in _worth_telling(reports):
        if report.uid is not None:
            together[report.kind, report.booking, report.uid, report.text].append(report)
    return [
        Message(uid, _SAID[kind](alike, words)) for (kind, _, uid, _), alike in together.items()
    ]


def _worth_telling(reports: Sequence[Report]) -> list[Report]:
    strongest = {
        (report.device, report.uid): report
        for matter in _MATTERS
        for report in reports
        if report.kind == matter
    }
    return [
        report
        for report in reports
        if report.kind in _SAID
        and (report.kind not in _MATTERS or strongest[report.device, report.uid] is report)
    ]


def _where(alike: Sequence[Report], words: Words) -> str:
    return words.named(report.device for report in alike if report.device)


def _processes(alike: Sequence[Report]) -> str:
    pids = sorted({pid for report in alike for pid in report.pids})
    if not pids:
        return "your processes"
    shown = ", ".join(map(str, pids[:MAX_PIDS_SHOWN])) + (", …" if pids[MAX_PIDS_SHOWN:] else "")
    return f"your processes ({shown})"


def _warned(alike: Sequence[Report], words: Words) -> tuple[str, ...]:
    return (
        f"Berth: {_processes(alike)} on {_where(alike, words)}: {alike[0].text}.",
        f"End them in time, or book: {words.page(None)}",
    )


def _overrun(alike: Sequence[Report], words: Words) -> tuple[str, ...]:
    return (
        f"Berth: your booking of {_where(alike, words)} has ended, "
        f"and {_processes(alike)} still run there. Please end them.",
        f"Your booking: {words.page(alike[0].booking)}",
    )


def _signalled(alike: Sequence[Report], words: Words) -> tuple[str, ...]:
    limit = timedelta(seconds=words.settings.grace_s)
    return (
        f"Berth: {_processes(alike)} on {_where(alike, words)} were asked to end (SIGTERM): "
        f"you have no booking there now. What is left in {spoken(limit)} at the latest is killed.",
        f"Book again: {words.page(None)}",
    )


def _killed(alike: Sequence[Report], words: Words) -> tuple[str, ...]:
    return (
        f"Berth: {_processes(alike)} on {_where(alike, words)} did not end and were killed.",
        f"Book again: {words.page(None)}",
    )


def _early(alike: Sequence[Report], words: Words) -> tuple[str, ...]:
    return (
        f"Berth: {_processes(alike)} on {_where(alike, words)} were sent SIGUSR1, as your booking "
        "asked for: it ends soon.",
        f"Your booking: {words.page(alike[0].booking)}",
    )


def _delayed(alike: Sequence[Report], words: Words) -> tuple[str, ...]:
    return (
        f"Berth: your booking of {_where(alike, words)} has begun, but it is not open yet: "
        f"{alike[0].text}. It opens by itself as soon as it can.",
        f"Your booking: {words.page(alike[0].booking)}",
    )


def _opened(alike: Sequence[Report], words: Words) -> tuple[str, ...]:
    return (f"Berth: {_where(alike, words)} is open for you now.",)


_SAID: Mapping[ReportKind, Callable[[Sequence[Report], Words], tuple[str, ...]]] = {
    "overrun": _overrun,
    "warned": _warned,
    "signalled": _signalled,
    "killed": _killed,
    "early_signalled": _early,
    "delayed": _delayed,
    "opened": _opened,
}
