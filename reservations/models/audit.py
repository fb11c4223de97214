"""What happened: the audit trail, and the reports of hosts from which parts of it come."""

from django.db import models

from reservations.models.bookings import Booking
from reservations.models.fleet import Device, Host
from reservations.models.people import User


class AuditEntry(models.Model):
    """One fact, written in the transaction that made it true. Never changed, never deleted."""

    at = models.DateTimeField()
    actor = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    actor_label = models.CharField(max_length=100, help_text='"alice", "host sim-a", "berth"')
    verb = models.CharField(max_length=40, help_text="booked, moved, opened, signalled, …")
    booking = models.ForeignKey(
        Booking, on_delete=models.PROTECT, null=True, related_name="audit_entries"
    )
    host = models.ForeignKey(Host, on_delete=models.PROTECT, null=True, related_name="+")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, null=True, related_name="+")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    why = models.CharField(max_length=500, blank=True)
    source_address = models.GenericIPAddressField(null=True)
    once_key = models.CharField(  # noqa: DJ001 -- NULL: any number may lack one
        max_length=100,
        null=True,
        unique=True,
        help_text="for facts that may be written once only: started:12, ended:12",
    )

    class Meta:
        indexes = [
            models.Index(name="audit_by_booking", fields=["booking", "at"]),
            models.Index(name="audit_by_time", fields=["at"]),
        ]

    def __str__(self) -> str:
        return f"{self.actor_label} {self.verb}"


class Report(models.Model):
    """A report of a host as it came; unique per host, so that a repeat is stored once."""

    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="reports")
    report_id = models.CharField(max_length=64)
    at = models.DateTimeField()
    received_at = models.DateTimeField()
    kind = models.CharField(max_length=30)
    booking = models.ForeignKey(
        Booking, on_delete=models.PROTECT, null=True, related_name="reports"
    )
    device = models.ForeignKey(Device, on_delete=models.PROTECT, null=True, related_name="+")
    body = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(name="report_once_per_host", fields=["host", "report_id"])
        ]

    def __str__(self) -> str:
        return f"{self.kind} from {self.host_id}"


class Site(models.Model):
    """One row: what is true of the whole database. ``plan_epoch`` tells hosts which one it is."""

    plan_epoch = models.CharField(max_length=32)

    def __str__(self) -> str:
        return "site"


class Pulse(models.Model):
    """When a part of the control plane last showed that it lives (beat, control worker)."""

    name = models.CharField(max_length=40, primary_key=True)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
