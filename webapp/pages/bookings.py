"""One's own bookings, a booking with its story, and the forms that change them."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.csrf import ensure_csrf_cookie
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from reservations import clock
from reservations.core import errors
from reservations.core.lifecycle import shows_all
from reservations.core.period import next_on_grid
from reservations.models import Booking
from reservations.selectors import bookings as bookings_read
from reservations.selectors import story as story_read
from reservations.selectors.visible import Viewer, booking_row, current_allocations
from reservations.services import bookings
from webapp import walltime
from webapp.pages import story
from webapp.pages.forms import BookForm
from webapp.pages.page import actor_of, person_of, refusal, show

DEFAULT_DURATION = timedelta(hours=2)
# What the buttons offer.
_EXTENSIONS_H = {"1": 1, "2": 2}


@require_safe
@login_required
@ensure_csrf_cookie
def mine(request: HttpRequest) -> HttpResponse:
    person, now = person_of(request), clock.now()
    own = story_read.own(person, now=now)
    viewer = Viewer.of(person)
    return show(
        request,
        "pages/bookings.html",
        section="bookings",
        running=[_card(one, viewer, now=now) for one in own.running],
        upcoming=[_card(one, viewer, now=now) for one in own.upcoming],
        past=[_card(one, viewer, now=now) for one in own.past],
    )


@require_safe
@login_required
@ensure_csrf_cookie
def detail(request: HttpRequest, booking_id: int) -> HttpResponse:
    person, now = person_of(request), clock.now()
    try:
        booking = bookings_read.one(booking_id)
    except errors.NotFound as error:
        return refusal(request, error)
    viewer = Viewer.of(person)
    zone = ZoneInfo(timezone.get_current_timezone_name())
    whole = shows_all(viewer.role_in(booking))
    entries = story_read.entries(booking) if whole else []
    return show(
        request,
        "pages/booking.html",
        section="bookings",
        **_card(booking, viewer, now=now),
        whole=whole,
        lines=[story.told(one, zone=zone) for one in entries],
    )


def _card(booking: Booking, viewer: Viewer, *, now: datetime) -> dict[str, Any]:
    """A booking as pages show it: the row says what this viewer may see and do."""
    return {
        "booking": booking,
        "row": booking_row(booking, viewer=viewer, now=now),
        "devices": [one.device for one in current_allocations(booking)],
        "is_mine": booking.owner_id == viewer.user_id,
        "shell_line": _shell_line(booking),
    }


def _shell_line(booking: Booking) -> str:
    """What to type to work on the devices; empty unless they are on one host."""
    devices = [one.device for one in current_allocations(booking)]
    hosts = {one.host.name for one in devices}
    if len(hosts) != 1:
        return ""
    uuids = ",".join(one.uuid for one in devices)
    return f"ssh -t {hosts.pop()} env CUDA_VISIBLE_DEVICES={uuids} bash -l"


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@ensure_csrf_cookie
def new(request: HttpRequest) -> HttpResponse:
    """The form way to book; it needs no scripts."""
    if request.method != "POST":
        return _form_page(request, BookForm(initial=_first_guess(request)))
    form = BookForm(request.POST)
    if form.is_valid():
        try:
            now = clock.now()
            made = bookings.book(form.wish(now=now), actor=actor_of(request), now=now)
        except errors.DomainError as error:
            _explain(form, error)
        else:
            messages.success(request, _("Booked: %(span)s.") % {"span": _span(made)})
            return redirect("booking", booking_id=made.pk)
    return _form_page(request, form, status=400)


def _form_page(request: HttpRequest, form: BookForm, *, status: int = 200) -> HttpResponse:
    return show(request, "pages/book.html", section="timeline", status=status, form=form)


def _first_guess(request: HttpRequest) -> dict[str, Any]:
    grid = timedelta(minutes=settings.BOOKING_GRID_MINUTES)
    from_now = request.GET.get("from") == "now"
    soon = next_on_grid(clock.now(), grid)
    device = request.GET.get("device")
    return {
        "start": clock.now() if from_now else soon,
        "end": soon + DEFAULT_DURATION,
        "from_now": from_now,
        "devices": [device] if device else [],
    }


def _explain(form: forms.Form, error: errors.DomainError) -> None:
    """Put every sentence where it belongs, and the nearest slot beside them."""
    zone = ZoneInfo(timezone.get_current_timezone_name())
    if isinstance(error, errors.Invalid):
        for name, texts in error.errors.items():
            for text in texts:
                form.add_error(name if name in form.fields else None, text)
        return
    for text in _reasons(error, zone):
        form.add_error(None, text)
    for slot in getattr(error, "alternatives", [])[:1]:
        text = _("The next free slot is %(slot)s.")
        form.add_error(None, text % {"slot": walltime.span_text(slot.start, slot.end, zone)})


def _reasons(error: errors.DomainError, zone: ZoneInfo) -> list[str]:
    """Every rule that objects, or everybody who stands in the way and until when."""
    if isinstance(error, errors.Refused):
        return [one.text for one in error.objections]
    if isinstance(error, errors.SlotTaken) and error.blockers:
        return [_blocker_text(one, zone) for one in error.blockers]
    return [str(error)]


def _blocker_text(blocker: errors.Blocker, zone: ZoneInfo) -> str:
    day, time = walltime.day_text(blocker.end, zone), walltime.time_text(blocker.end, zone)
    values = {"who": blocker.owner or _("somebody"), "until": f"{day} {time}"}
    return _("Booked by %(who)s until %(until)s.") % values


def _span(booking: Booking) -> str:
    zone = ZoneInfo(timezone.get_current_timezone_name())
    return walltime.span_text(booking.start, booking.end, zone)


@require_POST
@login_required
def extend(request: HttpRequest, booking_id: int) -> HttpResponse:
    longer = timedelta(hours=_EXTENSIONS_H.get(request.POST.get("hours", ""), 1))

    def verb(now: datetime) -> str:
        done = bookings.extend(booking_id, actor=actor_of(request), now=now, duration=longer)
        return _("Extended: %(span)s.") % {"span": _span(done)}

    return _after(request, booking_id, verb)


@require_POST
@login_required
def release(request: HttpRequest, booking_id: int) -> HttpResponse:
    def verb(now: datetime) -> str:
        bookings.release(booking_id, actor=actor_of(request), now=now)
        return _("Released. The devices are free for others.")

    return _after(request, booking_id, verb)


@require_POST
@login_required
def cancel(request: HttpRequest, booking_id: int) -> HttpResponse:
    def verb(now: datetime) -> str:
        bookings.cancel(booking_id, actor=actor_of(request), now=now)
        return _("Cancelled.")

    return _after(request, booking_id, verb)


def _after(request: HttpRequest, booking_id: int, verb: Callable[[datetime], str]) -> HttpResponse:
    """Do it, say so, and go back to where the button was."""
    try:
        messages.success(request, verb(clock.now()))
    except errors.NotFound as error:
        return refusal(request, error)
    except errors.DomainError as error:
        messages.error(request, str(error))
    if request.POST.get("back") == "mine":
        return redirect("bookings")
    return redirect("booking", booking_id=booking_id)
