"""What people decided: bookings, and the rows that keep their devices free of overlaps.

Upcoming, active and ended are not stored: they follow from the time (core/lifecycle.py).
"""

from django.contrib.postgres.fields import RangeBoundary, RangeOperators
from django.db import models
from django.db.models import F, Q

from reservations.models.constraints import NoOverlap, TsTzRange
from reservations.models.fleet import Device
from reservations.models.people import Team, User


class Booking(models.Model):
    class State(models.TextChoices):
        PENDING = "pending"
        CONFIRMED = "confirmed"
        CANCELLED = "cancelled"
        REJECTED = "rejected"

    class Kind(models.TextChoices):
        NORMAL = "normal"
        SERVICE = "service"
        MAINTENANCE = "maintenance"

    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="bookings")
    team = models.ForeignKey(
        Team, on_delete=models.PROTECT, null=True, blank=True, related_name="bookings"
    )
    people = models.ManyToManyField(User, blank=True, related_name="shared_bookings")
    start = models.DateTimeField()
    end = models.DateTimeField()
    planned_end = models.DateTimeField(help_text="the end last promised; a release leaves it")
    state = models.CharField(max_length=10, choices=State.choices, default=State.CONFIRMED)
    released_at = models.DateTimeField(null=True, blank=True)
    ended_reason = models.CharField(max_length=40, blank=True)
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.NORMAL)
    purpose = models.CharField(max_length=200, blank=True)
    keep_if_free = models.BooleanField(default=False)
    early_signal = models.BooleanField(default=False)
    pinned = models.BooleanField(default=False, help_text="the person chose these very devices")
    source = models.CharField(max_length=20, default="web")
    revision = models.PositiveIntegerField(default=1)
    held_back_since = models.DateTimeField(
        null=True, blank=True, help_text="its host reported that a device is not open for it yet"
    )
    held_back_why = models.CharField(max_length=500, blank=True)
    created = models.DateTimeField()
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="booking_start_before_end", condition=Q(start__lt=F("end"))
            ),
        ]
        indexes = [
            models.Index(name="booking_by_owner", fields=["owner", "start"]),
            models.Index(name="booking_by_start", fields=["start", "id"]),
            models.Index(name="booking_by_end", fields=["end"]),
            # Few, and in no range of allocations that hold: calendars ask for them apart.
            models.Index(name="booking_pending", fields=["end"], condition=Q(state="pending")),
        ]

    def __str__(self) -> str:
        return f"booking {self.pk}"


class Allocation(models.Model):
    """One device for one period of a booking. While ``holds``, nobody else can have an instant of it."""

    booking = models.ForeignKey(Booking, on_delete=models.PROTECT, related_name="allocations")
    device = models.ForeignKey(Device, on_delete=models.PROTECT, related_name="allocations")
    start = models.DateTimeField()
    end = models.DateTimeField()
    holds = models.BooleanField(default=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="allocation_start_before_end", condition=Q(start__lt=F("end"))
            ),
            NoOverlap(
                name="allocation_no_overlap",
                expressions=[
                    ("device", RangeOperators.EQUAL),
                    (TsTzRange("start", "end", RangeBoundary()), RangeOperators.OVERLAPS),
                ],
                condition=Q(holds=True),
            ),
        ]
        indexes = [models.Index(name="allocation_by_device_end", fields=["device", "end"])]

    def __str__(self) -> str:
        return f"{self.device_id} for booking {self.booking_id}"


class ApiCall(models.Model):
    """A request that carried an Idempotency-Key, and its answer; they commit together."""

    credential = models.CharField(max_length=80, help_text="who asked: token:7, user:3")
    key = models.CharField(max_length=200)
    method = models.CharField(max_length=10)
    path = models.CharField(max_length=300)
    body_hash = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(null=True)
    answer = models.BinaryField(null=True)
    created = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(name="api_call_once", fields=["credential", "key"])]
        indexes = [models.Index(name="api_call_by_age", fields=["created"])]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"
