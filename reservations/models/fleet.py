"""What can be booked: hosts and their devices."""

from django.db import models

from reservations.models.people import User


class Host(models.Model):
    class Mode(models.TextChoices):
        OBSERVE = "observe"
        WARN = "warn"
        ENFORCE = "enforce"

    name = models.SlugField(max_length=63, unique=True)
    labels = models.JSONField(default=dict, blank=True)
    mode = models.CharField(max_length=10, choices=Mode.choices, default=Mode.OBSERVE)
    settings = models.JSONField(
        default=dict, blank=True, help_text="overrides of core.wire.HostSettings, such as grace_s"
    )
    token_digest = models.BinaryField(max_length=32, null=True, unique=True, editable=False)
    created = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class HostStatus(models.Model):
    """What the host last said of itself. A row of its own: heartbeats never contend with bookings."""

    host = models.OneToOneField(
        Host, on_delete=models.CASCADE, primary_key=True, related_name="status"
    )
    last_seen = models.DateTimeField(null=True)
    silent_since = models.DateTimeField(null=True, help_text="set once when the host is flagged")
    clock_offset_s = models.FloatField(null=True)
    agent_version = models.CharField(max_length=32, blank=True)
    mode = models.CharField(max_length=10, blank=True, help_text="the mode the agent acts in")
    health = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"status of {self.host_id}"


class HostHold(models.Model):
    """Until when nothing is changed on a host and nobody is stopped there; over by itself at ``until``."""

    host = models.OneToOneField(Host, on_delete=models.CASCADE, primary_key=True)
    reason = models.CharField(max_length=200)
    since = models.DateTimeField()
    until = models.DateTimeField()
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")

    def __str__(self) -> str:
        return f"hold of {self.host_id}"


class Device(models.Model):
    """A bookable unit, known by its UUID and never by its index."""

    class Kind(models.TextChoices):
        GPU = "gpu"
        MIG = "mig"

    class ManagedBy(models.TextChoices):
        BERTH = "berth"
        SLURM = "slurm"
        KUBERNETES = "kubernetes"
        NONE = "none"

    class State(models.TextChoices):
        OK = "ok"
        LOST = "lost"
        NEEDS_ATTENTION = "needs_attention"
        RETIRED = "retired"

    uuid = models.CharField(max_length=64, unique=True)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="devices")
    vendor = models.CharField(max_length=32)
    kind = models.CharField(max_length=10, choices=Kind.choices, default=Kind.GPU)
    parent = models.ForeignKey(
        "self", on_delete=models.PROTECT, null=True, blank=True, related_name="children"
    )
    index = models.PositiveIntegerField(help_text="as the vendor counts today; for display only")
    minor = models.PositiveIntegerField(null=True, blank=True)
    bus_id = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=200)
    memory_bytes = models.BigIntegerField(null=True, blank=True)
    bookable = models.BooleanField(default=False)
    managed_by = models.CharField(max_length=12, choices=ManagedBy.choices, default=ManagedBy.NONE)
    state = models.CharField(max_length=16, choices=State.choices, default=State.OK)
    state_since = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["host__name", "index", "uuid"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_simulated(self) -> bool:
        """Wherever a device is shown, nobody may take it for a real one."""
        return self.vendor == "simulated"

    @property
    def name(self) -> str:
        """What people see, such as ``A100 80GB · 3``."""
        return f"{self.model} · {self.index}"
