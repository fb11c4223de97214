"""The manage page: hosts and their health, how they treat people, and holding them. For operators only."""

from collections.abc import Callable
from datetime import datetime
from typing import Concatenate, ParamSpec

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_safe

from reservations import clock, livestore
from reservations.core import errors
from reservations.models import Host
from reservations.selectors import holds as holds_read
from reservations.selectors import managing
from reservations.services import holds, hosts, inventory, previews
from webapp import walltime
from webapp.pages import story
from webapp.pages.host_state import HostState
from webapp.pages.manage_forms import HoldForm, SettingsForm
from webapp.pages.page import actor_of, current_zone, person_of, refusal, show

P = ParamSpec("P")


def for_operators(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Everybody else is told so; what is not there is told as on every other page."""

    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not person_of(request).is_operator:
            return refusal(request, errors.Forbidden(_("This page is for operators.")))
        try:
            return view(request, *args, **kwargs)
        except (errors.Forbidden, errors.NotFound) as error:
            return refusal(request, error)

    return login_required(guarded)


def of_a_form(
    view: Callable[Concatenate[HttpRequest, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """Where a form is sent to. Whoever reads there, after a refusal, is led to the form's page."""

    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.method in {"GET", "HEAD"}:
            return redirect(reverse("manage-host", kwargs=kwargs) if kwargs else "manage")
        return view(request, *args, **kwargs)

    return require_http_methods(["GET", "HEAD", "POST"])(guarded)


@require_safe
@for_operators
def overview(request: HttpRequest) -> HttpResponse:
    return _overview(request, HoldForm())


def _overview(request: HttpRequest, form: HoldForm, *, status: int = 200) -> HttpResponse:
    found = _states(managing.hosts(), now=clock.now())
    return show(
        request,
        "pages/manage.html",
        section="manage",
        status=status,
        hosts=found,
        held=[one for one in found if one.hold],
        hold_form=form,
    )


@require_safe
@for_operators
def host(request: HttpRequest, name: str) -> HttpResponse:
    found = managing.host(name)
    return _host(request, found, settings_form=SettingsForm(found), hold_form=HoldForm())


def _host(
    request: HttpRequest,
    found: Host,
    *,
    settings_form: SettingsForm,
    hold_form: HoldForm,
    status: int = 200,
) -> HttpResponse:
    (state,) = _states([found], now=clock.now())
    zone = current_zone()
    return show(
        request,
        "pages/manage_host.html",
        section="manage",
        status=status,
        state=state,
        seen=hosts.behaviour_key(found),
        settings_form=settings_form,
        hold_form=hold_form,
        lines=[story.told(one, zone=zone) for one in managing.trail(found)],
    )


def _states(found: list[Host], *, now: datetime) -> list[HostState]:
    devices = managing.devices(found)
    held = {one.host_id: one for one in holds_read.in_force(now=now)}
    uuids = [one.uuid for of_host in devices.values() for one in of_host]
    verdicts = {uuid: live["verdict"] for uuid, live in livestore.latest(uuids).items()}
    return [
        HostState(
            host=one,
            status=getattr(one, "status", None),
            hold=held.get(one.pk),
            devices=devices.get(one.pk, []),
            verdicts=verdicts,
            now=now,
        )
        for one in found
    ]


@of_a_form
@for_operators
def mode(request: HttpRequest, name: str) -> HttpResponse:
    """To observe or to warn; the way to enforce leads through its preview."""
    found = managing.host(name)
    wanted = request.POST.get("mode", "")
    if wanted == Host.Mode.ENFORCE:
        return redirect("manage-enforce", name=name)
    return _change(request, found, wanted, success=_("%(host)s is asked to %(mode)s from now on."))


def _change(request: HttpRequest, found: Host, wanted: str, *, success: str) -> HttpResponse:
    try:
        hosts.set_mode(
            found,
            mode=wanted,
            settings=found.settings,
            actor=actor_of(request),
            now=clock.now(),
            seen=request.POST.get("seen", ""),
        )
    except (errors.NotPossibleNow, errors.Invalid) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, success % {"host": found.name, "mode": wanted})
    return redirect("manage-host", name=found.name)


@require_http_methods(["GET", "HEAD", "POST"])
@for_operators
def enforce(request: HttpRequest, name: str) -> HttpResponse:
    """Whom the host would stop, and the switch; what was seen must still be so when it is pressed."""
    found = managing.host(name)
    if found.mode == Host.Mode.ENFORCE:
        messages.success(request, _("%(host)s enforces.") % {"host": name})
        return redirect("manage-host", name=name)
    foreseen = previews.of_host(found, now=clock.now())
    if request.method == "POST" and request.POST.get("foreseen") == foreseen.key:
        return _change(request, found, Host.Mode.ENFORCE, success=_("%(host)s enforces."))
    stale = request.method == "POST"
    (state,) = _states([found], now=clock.now())
    return show(
        request,
        "pages/manage_enforce.html",
        section="manage",
        status=409 if stale else 200,
        state=state,
        preview=foreseen,
        preview_age=walltime.duration_text(foreseen.age) if foreseen.age else "",
        adopt_h=f"{foreseen.adopt_h:g}",
        seen=hosts.behaviour_key(found),
        stale=stale,
    )


@of_a_form
@for_operators
def settings(request: HttpRequest, name: str) -> HttpResponse:
    found = managing.host(name)
    form = SettingsForm(found, request.POST)
    if not form.is_valid():
        _refuse(request)
        return _host(request, found, settings_form=form, hold_form=HoldForm(), status=400)
    try:
        hosts.set_mode(
            found,
            mode=found.mode,
            settings=form.overrides(),
            actor=actor_of(request),
            now=clock.now(),
            seen=request.POST.get("seen", ""),
        )
    except (errors.NotPossibleNow, errors.Invalid) as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Saved. The host follows with its next plan."))
    return redirect("manage-host", name=name)


@of_a_form
@for_operators
def hold_all(request: HttpRequest) -> HttpResponse:
    form = HoldForm(request.POST)
    if not form.is_valid():
        _refuse(request)
        return _overview(request, form, status=400)
    return _hold(request, None, form)


@of_a_form
@for_operators
def hold(request: HttpRequest, name: str) -> HttpResponse:
    form = HoldForm(request.POST)
    if not form.is_valid():
        _refuse(request)
        found = managing.host(name)
        return _host(request, found, settings_form=SettingsForm(found), hold_form=form, status=400)
    return _hold(request, [name], form)


def _refuse(request: HttpRequest) -> None:
    """At the top of the page: the fields that say why may be far below."""
    messages.error(request, _("Nothing was changed. What is wrong stands below, in red."))


def _hold(request: HttpRequest, names: list[str] | None, form: HoldForm) -> HttpResponse:
    now = clock.now()
    until = now + form.duration
    done = holds.hold(
        names,
        reason=form.cleaned_data["reason"],
        until=until,
        actor=actor_of(request),
        now=now,
    )
    text = ngettext(
        "%(host)s is held until %(end)s.", "%(count)d hosts are held until %(end)s.", len(done)
    )
    end = walltime.moment_text(until, current_zone())
    messages.success(request, text % {"host": ", ".join(done), "count": len(done), "end": end})
    return _back(names)


@of_a_form
@for_operators
def resume_all(request: HttpRequest) -> HttpResponse:
    return _resume(request, None)


@of_a_form
@for_operators
def resume(request: HttpRequest, name: str) -> HttpResponse:
    return _resume(request, [name])


def _resume(request: HttpRequest, names: list[str] | None) -> HttpResponse:
    done = holds.resume(names, actor=actor_of(request), now=clock.now())
    if done:
        text = ngettext("%(host)s acts again.", "%(count)d hosts act again.", len(done))
        messages.success(request, text % {"host": ", ".join(done), "count": len(done)})
    else:
        messages.success(request, _("Nothing was held."))
    return _back(names)


def _back(names: list[str] | None) -> HttpResponseRedirect:
    return redirect("manage-host", name=names[0]) if names else redirect("manage")


@of_a_form
@for_operators
def device_fine(request: HttpRequest, name: str) -> HttpResponse:
    """An operator has looked at the device that needed attention, and takes it for fine."""
    uuid = request.POST.get("device", "")
    device = inventory.mark_fine(name, uuid, actor=actor_of(request), now=clock.now())
    messages.success(request, _("%(device)s is marked as fine.") % {"device": device.name})
    return redirect("manage-host", name=name)
