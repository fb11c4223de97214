"""Who books: people, teams, their names on the hosts, and the tokens of their scripts."""

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import PermissionsMixin
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.db import models
from django.db.models import Q


class UserManager(BaseUserManager["User"]):
    def create_user(self, username: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(username=self.model.normalize_username(username), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, username: str, password: str | None = None, **fields: Any) -> "User":
        return self.create_user(username, password, **fields, is_operator=True, is_superuser=True)


class User(AbstractBaseUser, PermissionsMixin):
    class Kind(models.TextChoices):
        PERSON = "person"
        SERVICE = "service"
        GUEST = "guest"

    username = models.CharField(
        max_length=150, unique=True, validators=[UnicodeUsernameValidator()]
    )
    display_name = models.CharField(max_length=150, blank=True)
    email = models.EmailField(blank=True)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.PERSON)
    time_zone = models.CharField(
        max_length=64, blank=True, help_text="IANA name; empty = the site's"
    )
    locale = models.CharField(max_length=16, blank=True, help_text="empty = the browser's")
    is_active = models.BooleanField(default=True)
    is_operator = models.BooleanField(default=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    date_joined = models.DateTimeField(auto_now_add=True)
    calendar_digest = models.BinaryField(
        max_length=32,
        null=True,
        blank=True,
        unique=True,
        editable=False,
        help_text="SHA-256 of the secret in the person's iCal address",
    )

    USERNAME_FIELD = "username"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = UserManager()

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        """What other people see."""
        return self.display_name or self.username

    def has_access(self, now: datetime) -> bool:
        """Whether this person may use the site at all; an access that expires is over at that instant."""
        return self.is_active and (self.expires_at is None or now < self.expires_at)

    @property
    def is_staff(self) -> bool:
        """Who may open the Django admin."""
        return self.is_operator


class Team(models.Model):
    name = models.CharField(max_length=100, unique=True)
    share = models.PositiveIntegerField(default=1, help_text="weight of the team in fair sharing")
    members = models.ManyToManyField(User, through="Membership", related_name="teams")

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    is_manager = models.BooleanField(default=False)

    class Meta:
        constraints = [models.UniqueConstraint(name="membership_once", fields=["team", "user"])]

    def __str__(self) -> str:
        return f"{self.user_id} in {self.team_id}"


class Account(models.Model):
    """Who somebody is on a host (or, without a host, on all of them). Never set by its owner."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="accounts")
    host = models.ForeignKey(
        "reservations.Host",
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="accounts",
    )
    unix_name = models.CharField(max_length=32)
    expected_uid = models.PositiveBigIntegerField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="account_name_per_host",
                fields=["host", "unix_name"],
                condition=Q(host__isnull=False),
            ),
            models.UniqueConstraint(
                name="account_name_everywhere", fields=["unix_name"], condition=Q(host__isnull=True)
            ),
            models.UniqueConstraint(
                name="account_one_per_host",
                fields=["user", "host"],
                condition=Q(host__isnull=False),
            ),
            models.UniqueConstraint(
                name="account_one_everywhere", fields=["user"], condition=Q(host__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return self.unix_name


class Token(models.Model):
    """A personal token for scripts. Only the SHA-256 of its 256 random bits is kept."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    scopes = models.JSONField(default=list, help_text='of "read", "book", "admin"')
    created = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
