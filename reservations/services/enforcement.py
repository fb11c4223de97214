"""What hosts report: kept once, told in the audit trail, and to the people whom it concerns."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.db import transaction

from reservations import announce
from reservations.core import wire
from reservations.models import Allocation, AuditEntry, Booking, Device, Host, Report
from reservations.selectors import bookings
from reservations.services import audit, inventory, openings, report_notices
from reservations.services.hosts import host_actor
from reservations.services.report_notices import Directory, Event

# Nothing that a host keeps in its spool is older; a clock that says so is broken.
_OLDEST = timedelta(days=400)
_STUCK_OR_GONE = ("stuck", "gone")
_FACTS = ("unix_name", "uid", "pids", "latency_s", "device")


@dataclass(frozen=True)
class _Known:
    """What the reports of one batch refer to."""

    bookings: dict[int, Booking]
    devices: dict[str, Device]
    foreign_devices: frozenset[str]
    stored: frozenset[str]
    directory: Directory


def record(
    host: Host, reports: Sequence[wire.Report], *, received_at: datetime
) -> wire.ReportsAnswer:
    """Store each report once, with its audit entry and its notices.

    A report about a booking or a device of another host is rejected; waiting would not change that.
    """
    stored: list[str] = []
    rejected: list[wire.RejectedReport] = []
    with transaction.atomic():
        # Two deliveries of one batch take turns, so that the second finds what the first has stored.
        Host.objects.select_for_update(no_key=True).get(pk=host.pk)
        known = _look_up(host, reports, now=received_at)
        fresh: dict[str, wire.Report] = {}
        for report in reports:
            if code := _refusal(report, known, received_at):
                rejected.append(wire.RejectedReport(id=report.id, code=code))
                continue
            stored.append(report.id)
            if report.id not in known.stored:
                fresh.setdefault(report.id, report)
        for report in fresh.values():
            _store(host, report, known, received_at=received_at)
        _announce(fresh.values(), known)
    return wire.ReportsAnswer(stored=tuple(dict.fromkeys(stored)), rejected=tuple(rejected))


def _look_up(host: Host, reports: Sequence[wire.Report], *, now: datetime) -> _Known:
    ids = {report.booking for report in reports if report.booking is not None}
    here = Allocation.objects.filter(booking__in=ids, device__host=host).values("booking")
    found = bookings.whole().filter(pk__in=here)
    uuids = {report.device for report in reports if report.device is not None}
    devices = list(Device.objects.filter(uuid__in=uuids).select_related("host"))
    stored = Report.objects.filter(host=host, report_id__in={report.id for report in reports})
    return _Known(
        bookings={one.pk: one for one in found},
        devices={one.uuid: one for one in devices if one.host_id == host.pk},
        foreign_devices=frozenset(one.uuid for one in devices if one.host_id != host.pk),
        stored=frozenset(stored.values_list("report_id", flat=True)),
        directory=Directory(host, now=now),
    )


def _refusal(report: wire.Report, known: _Known, received_at: datetime) -> str | None:
    if report.booking is not None and report.booking not in known.bookings:
        return "booking_elsewhere"
    if report.device in known.foreign_devices:
        return "device_elsewhere"
    return "too_old" if report.at < received_at - _OLDEST else None


def _store(host: Host, report: wire.Report, known: _Known, *, received_at: datetime) -> None:
    # A host whose clock runs ahead reports nothing from the future.
    at = min(report.at, received_at)
    booking = known.bookings.get(report.booking) if report.booking is not None else None
    device = known.devices.get(report.device) if report.device is not None else None
    body = msgspec.to_builtins(report)
    Report.objects.create(
        host=host,
        report_id=report.id,
        at=at,
        received_at=received_at,
        kind=report.kind,
        booking=booking,
        device=device,
        body=body,
    )
    audit.record(
        report.kind,
        actor=host_actor(host),
        now=at,
        why=report.text,
        booking=booking,
        host=host,
        device=device,
        after={name: body[name] for name in _FACTS if name in body} or None,
    )
    if device is not None:
        _note_state(device, report.kind, now=at)
    event = Event(known.directory, host, report, at, booking, device)
    report_notices.tell(event, now=received_at)
    if booking is not None and report.kind in openings.KINDS:
        openings.note(booking)


def _note_state(device: Device, kind: wire.ReportKind, *, now: datetime) -> None:
    if kind == "device_lost":
        inventory.mark_lost(device, now=now)
    elif kind == "device_back":
        inventory.mark_back(device, now=now)
    elif kind in _STUCK_OR_GONE:
        if kind == "stuck":
            inventory.mark_needs_attention(device, now=now)
        # Also then: what waited in a spool may be over by now.
        if device.state == Device.State.NEEDS_ATTENTION and _was_only_stuck(device):
            inventory.mark_recovered(device, now=now)


def _was_only_stuck(device: Device) -> bool:
    """Whether it needs attention for those alone whom nothing could end, and each has been seen to leave.

    What was before an operator marked it as fine is settled.
    """
    last: dict[tuple[str, str], str] = {}
    stuck_at: set[datetime] = set()
    told = Report.objects.filter(device=device, kind__in=_STUCK_OR_GONE)
    fine = AuditEntry.objects.filter(device=device, verb="device_fine").order_by("-at").first()
    if fine is not None:
        told = told.filter(at__gt=fine.at)
    for kind, at, body in told.order_by("at", "pk").values_list("kind", "at", "body"):
        last[str(body.get("unix_name")), str(body.get("uid"))] = kind
        if kind == "stuck":
            stuck_at.add(at)
    return device.state_since in stuck_at and "stuck" not in last.values()


def _announce(reports: Iterable[wire.Report], known: _Known) -> None:
    for pk in sorted({report.booking for report in reports if report.booking is not None}):
        announce.booking_changed(known.bookings[pk])
