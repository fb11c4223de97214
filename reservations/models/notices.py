"""Messages to people: an outbox. Written with the change, delivered afterwards by a channel."""

from django.db import models
from django.db.models import Q

from reservations.models.bookings import Booking
from reservations.models.people import User


class Notice(models.Model):
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="notices")
    booking = models.ForeignKey(
        Booking, on_delete=models.CASCADE, null=True, related_name="notices"
    )
    kind = models.CharField(max_length=40)
    text = models.TextField()
    key = models.CharField(
        max_length=200, unique=True, help_text="once per fact: ending:12:2027-01-01T10:00Z:15"
    )
    created = models.DateTimeField()
    claimed_at = models.DateTimeField(null=True)
    delivered_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(name="notice_by_user", fields=["user", "created"]),
            models.Index(
                name="notice_waiting", fields=["created"], condition=Q(delivered_at__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.key
