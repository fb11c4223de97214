"""Rules as data: administrators edit rows, `reservations/core/rules` knows what each kind means."""

from django.db import models


class Rule(models.Model):
    class Scope(models.TextChoices):
        USER = "user"
        TEAM = "team"
        SITE = "site"

    class Action(models.TextChoices):
        DENY = "deny"
        NEEDS_APPROVAL = "needs_approval"
        WARN = "warn"

    name = models.SlugField(max_length=60, unique=True)
    kind = models.CharField(max_length=40)
    limit = models.FloatField(help_text="in the kind's unit: hours, days, devices")
    match = models.JSONField(default=dict, blank=True)
    scope = models.CharField(max_length=8, choices=Scope.choices, default=Scope.USER)
    action = models.CharField(max_length=16, choices=Action.choices, default=Action.DENY)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_to = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
