"""Who is told what when a host reports: plain sentences that say what happened and what to do next."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from django.conf import settings

from reservations.core.wire import Report
from reservations.models import Allocation, Booking, Device, Host
from reservations.selectors import accounts, machines
from reservations.services import notices, wording

# Somebody whose booking begins later than this need not hear of a device's trouble yet.
_SOON = timedelta(hours=1)
# What waited longer than this in a host's spool is no news to people any more.
_NEWS_FOR = timedelta(hours=1)


class Directory:
    """Who is who on a host, looked up once for a whole batch of reports."""

    def __init__(self, host: Host, *, now: datetime) -> None:
        self._host = host
        self._now = now

    @cached_property
    def operators(self) -> list[int]:
        return list(machines.operators().values_list("pk", flat=True))

    @cached_property
    def _by_unix_name(self) -> dict[str, int]:
        known = accounts.unix_accounts(self._host, now=self._now)
        return {account.unix_name: pk for pk, account in known.items()}

    def named(self, unix_name: str | None) -> list[int]:
        """Whoever has this name on the host: nobody or one person."""
        found = self._by_unix_name.get(unix_name) if unix_name else None
        return [] if found is None else [found]


@dataclass(frozen=True)
class Event:
    """A report with what it refers to; ``at`` is when it happened."""

    directory: Directory
    host: Host
    report: Report
    at: datetime
    booking: Booking | None = None
    device: Device | None = None

    @property
    def where(self) -> str:
        """The device as people know it."""
        if self.device is None:
            return f"a device of {self.host.name}"
        return wording.names([self.device])

    @property
    def who(self) -> str:
        return self.report.unix_name or "somebody"

    @property
    def stops(self) -> bool:
        return self.host.mode == Host.Mode.ENFORCE


@dataclass(frozen=True)
class Letter:
    people: Iterable[int]
    text: notices.Text


def tell(event: Event, *, now: datetime) -> None:
    """Write the notices of a report. In mode ``observe`` only operators hear anything.

    Nor does anybody else hear of what happened long ago; the booking's page tells that story.
    """
    kind = event.report.kind
    key = f"{kind}:{event.host.pk}:{event.report.id}"
    letters = list(_OPERATORS[kind](event)) if kind in _OPERATORS else []
    fresh = now - event.at <= _NEWS_FOR
    if kind in _PEOPLE and fresh and event.host.mode != Host.Mode.OBSERVE:
        letters = [*_PEOPLE[kind](event), *letters]
    for letter in letters:
        # The first letter that reaches somebody counts: it is the most personal one.
        notices.tell(letter.people, kind, letter.text, key=key, now=now, booking=event.booking)


def _delayed(event: Event) -> Iterable[Letter]:
    why = event.report.text or "somebody else's processes are still on it"
    yield Letter(
        _of_booking(event),
        f"{event.where} is not open for you yet: {why}. "
        "It opens by itself as soon as that is over; book another device if you cannot wait.",
    )


def _opened(event: Event) -> Iterable[Letter]:
    """Only worth a word to those who have been told that they must wait."""
    if event.booking is not None and event.booking.held_back_since is not None:
        yield Letter(_person(event) or _of_booking(event), f"{event.where} is open for you now.")


def _intruder(event: Event) -> Iterable[Letter]:
    consequence = " Otherwise they will be stopped." if event.stops else ""
    yield Letter(
        _person(event),
        f"You use {event.where} without a booking. Book it, or end your processes there.{consequence}",
    )
    if holding := _current(event):
        yield Letter(
            _people(holding),
            f"{event.who if settings.SHOW_OWNERS else 'Somebody'} uses {event.where}, "
            "which is booked by you. They have been told"
            + (" and will be stopped if they stay." if event.stops else "."),
        )


def _overrun(event: Event) -> Iterable[Letter]:
    consequence = "They will be stopped." if event.stops else "Please end them."
    yield Letter(
        _person(event) or _of_booking(event),
        f"Your booking of {event.where} has ended, and processes of yours are still on it. {consequence}",
    )


def _signalled(event: Event) -> Iterable[Letter]:
    yield Letter(
        _person(event),
        f"Your processes on {event.where} have been asked to end (SIGTERM). "
        "Those that stay will be ended by force.",
    )


def _killed(event: Event) -> Iterable[Letter]:
    yield Letter(_person(event), f"Your processes on {event.where} have been ended by force.")


def _stuck(event: Event) -> Iterable[Letter]:
    yield Letter(
        _person(event),
        f"A process of yours on {event.where} cannot be ended, not even by force. "
        "An administrator has been told.",
    )
    following = _next(event)
    if following is not None and following.start <= event.at + _SOON:
        yield Letter(
            _people(following),
            f"{event.where}, which you have booked, is held by a process that cannot be ended. "
            "An administrator has been told. Book another device if you cannot wait.",
        )


def _no_account(event: Event) -> Iterable[Letter]:
    yield Letter(
        _of_booking(event),
        f"{event.where} cannot be opened for {event.who}: {event.report.text or 'no such account'}. "
        "Ask an administrator to set your account on this host.",
    )


def _device_lost(event: Event) -> Iterable[Letter]:
    if holding := _current(event):
        yield Letter(
            _people(holding),
            f"{event.where} is lost: the host no longer reaches it. "
            "An administrator has been told; book another device if you need one now.",
        )


def _to_operators(sentence: str) -> Callable[[Event], Iterable[Letter]]:
    def letters(event: Event) -> Iterable[Letter]:
        text = sentence.format(who=event.who, where=event.where, host=event.host.name)
        because = f" {event.report.text}" if event.report.text else ""
        yield Letter(event.directory.operators, f"{text}{because}")

    return letters


_PEOPLE: dict[str, Callable[[Event], Iterable[Letter]]] = {
    "opened": _opened,
    "delayed": _delayed,
    "intruder": _intruder,
    "overrun": _overrun,
    "signalled": _signalled,
    "killed": _killed,
    "stuck": _stuck,
    "no_account": _no_account,
    "device_lost": _device_lost,
}
_OPERATORS: dict[str, Callable[[Event], Iterable[Letter]]] = {
    "intruder": _to_operators("{who} uses {where} without a booking."),
    "stuck": _to_operators("A process of {who} on {where} cannot be ended; look at the host."),
    "drift_given_up": _to_operators(
        "Something else keeps changing who may open {where}. Berth leaves it alone, and stops nobody there. "
        "Find what does (another tool, a udev rule)."
    ),
    "no_account": _to_operators("{who} has no usable account on {host}."),
    "hold_fire": _to_operators(
        "{host} should stop unusually many people at once and stops nobody new. Look at its page under Manage: "
        "raise the kill budget if they are to be stopped, or type `berth-host adopt` there to let them stay."
    ),
    "granted_by_hand": _to_operators(
        "Somebody with root on {host} has given {where} to {who}. Bookings of others wait for that."
    ),
    "held": _to_operators(
        "{host} is held: nothing is opened or closed there and nobody is stopped. What was said by hand on the "
        "host ends with `berth-host resume`."
    ),
    "resumed": _to_operators("{host} is held by hand no more."),
    "yielded": _to_operators(
        "Somebody with root on {host} has Berth leave {where} alone. `berth-host yield --back` ends that."
    ),
    "taken_back": _to_operators("Berth looks after {where} again."),
    "adopted": _to_operators(
        "Somebody with root on {host} has adopted what runs there. Nobody of these is stopped before somebody "
        "else's booking begins on their device."
    ),
    "released_host": _to_operators(
        "Somebody with root on {host} has put every device back as it was: bookings are not enforced there. "
        "`berth-host resume` ends that."
    ),
    "grant_vanished": _to_operators("A running grant on {where} left the plan without an end."),
    "plan_refused": _to_operators("{host} cannot use its new plan and keeps the old one."),
}


def _of_booking(event: Event) -> frozenset[int]:
    if event.booking is None:
        return frozenset()
    return machines.people_of([event.booking])[event.booking.pk]


def _people(holding: Allocation) -> frozenset[int]:
    return machines.people_of([holding.booking])[holding.booking_id]


def _person(event: Event) -> list[int]:
    return event.directory.named(event.report.unix_name)


def _current(event: Event) -> Allocation | None:
    """Who holds the device at the time of the report."""
    following = _next(event)
    return following if following is not None and following.start <= event.at else None


def _next(event: Event) -> Allocation | None:
    return machines.next_on(event.device, after=event.at) if event.device else None
