"""What time alone does to a booking: it starts, it draws to its end, it ends.

Level-triggered: each pass looks for bookings that have passed a milestone without its audit entry, so a
pass that was missed is made up for by the next one, and passes that run twice at once change nothing.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from reservations import announce
from reservations.models import AuditEntry, Booking, Pulse
from reservations.selectors import bookings, continuations, machines
from reservations.services import audit, notices, wording
from reservations.services.actors import BERTH

DRAWS_TO_ITS_END = timedelta(minutes=15)
# How far behind the last pass the next one looks: for what was being committed meanwhile.
_OVERLAP = timedelta(hours=1)
# Nobody needs to hear so late that a booking has begun or ended.
_NEWS_FOR = timedelta(hours=1)
# Before the first pass ever: older history is imported history.
_FIRST_LOOK = timedelta(hours=24)
_PULSE = "milestones"


def pass_milestones(*, now: datetime) -> int:
    """Write each milestone that has been reached, once; says how many were new."""
    since = _last_pass(now) - _OVERLAP
    confirmed = bookings.whole().filter(state=Booking.State.CONFIRMED)
    passed = 0
    started = confirmed.filter(start__gt=since, start__lte=now).order_by("start")
    for booking in _without(started, "started"):
        passed += _start(booking, now=now)
    ending = confirmed.filter(start__lte=now, end__gt=now, end__lte=now + DRAWS_TO_ITS_END)
    for booking in _not_yet_ending(ending.order_by("end")):
        passed += _draw_to_end(booking, now=now)
    ended = confirmed.filter(end__gt=since, end__lte=now).order_by("end")
    for booking in _without(ended, "ended"):
        passed += _end(booking, now=now)
    Pulse.objects.update_or_create(name=_PULSE, defaults={"at": now})
    return passed


def _last_pass(now: datetime) -> datetime:
    """The instant up to which everything has been looked at."""
    last = Pulse.objects.filter(name=_PULSE).first()
    return last.at if last else now - _FIRST_LOOK


def _without(rows: QuerySet[Booking], verb: str) -> Iterable[Booking]:
    return rows.exclude(Exists(AuditEntry.objects.filter(booking=OuterRef("pk"), verb=verb)))


def _not_yet_ending(rows: Iterable[Booking]) -> Iterable[Booking]:
    """Those whose present end has not been announced; after an extension it is another end."""
    found = {_ending_key(booking): booking for booking in rows}
    written = AuditEntry.objects.filter(once_key__in=found).values_list("once_key", flat=True)
    return [found[key] for key in found.keys() - set(written)]


def _ending_key(booking: Booking) -> str:
    return f"ending:{booking.pk}:{booking.end:%Y%m%dT%H%M%S}"


def _start(booking: Booking, *, now: datetime) -> bool:
    with transaction.atomic():
        if not _write(booking, "started", f"started:{booking.pk}", at=booking.start):
            return False
        if now - booking.start <= _NEWS_FOR and _is_for_people(booking):
            _tell_started(booking, now=now)
    return True


def _draw_to_end(booking: Booking, *, now: datetime) -> bool:
    with transaction.atomic():
        return _write(booking, "ending", _ending_key(booking), at=now)


def _end(booking: Booking, *, now: datetime) -> bool:
    with transaction.atomic():
        if not _write(booking, "ended", f"ended:{booking.pk}", at=booking.end):
            return False
        fresh = now - booking.end <= _NEWS_FOR and booking.released_at is None
        if fresh and _is_for_people(booking):
            _tell_ended(booking, now=now)
    return True


def _write(booking: Booking, verb: str, key: str, *, at: datetime) -> bool:
    """The audit entry and its announcement; False if somebody else was first."""
    if not audit.record_once(key, verb, actor=BERTH, now=at, booking=booking):
        return False
    announce.booking_changed(booking)
    return True


def _is_for_people(booking: Booking) -> bool:
    return booking.kind != Booking.Kind.MAINTENANCE


def _tell_started(booking: Booking, *, now: datetime) -> None:
    """Whoever had all the devices until now goes on with them: nothing begins for them."""
    before = continuations.just_before(booking)
    for person in machines.people_of([booking])[booking.pk]:
        fresh = continuations.not_in(booking, before, person)
        if fresh:
            text = _begun(booking, wording.names(fresh), now=now)
            key = f"started:{booking.pk}"
            notices.tell([person], "started", text, key=key, now=now, booking=booking)


def _begun(booking: Booking, names: str, *, now: datetime) -> notices.Text:
    return lambda user: (
        f"Your booking has begun: {names}, until {wording.local_time(booking.end, user, now=now)}."
    )


def _tell_ended(booking: Booking, *, now: datetime) -> None:
    after = continuations.right_after(booking)
    for person in machines.people_of([booking])[booking.pk]:
        over = continuations.not_in(booking, after, person)
        if over:
            text = f"Your booking of {wording.names(over)} has ended."
            key = f"ended:{booking.pk}"
            notices.tell([person], "ended", text, key=key, now=now, booking=booking)
