"""Names and shapes of every message between the control plane and a GPU host.

Both sides import this file and nothing else of each other. Instants are RFC 3339 with offset;
``None`` means "not available", never zero. A host may run one version behind the server.
"""

from datetime import UTC, datetime
from hashlib import sha256
from typing import Annotated, Literal

import msgspec

VERSION = 1
ACCEPTED_VERSIONS = frozenset({VERSION})

# Task names. They take no arguments: a forged message gains one extra look, nothing more.
NUDGE = "berth.host.nudge"

MAX_GRANTS = 5_000
MAX_REPORTS_PER_BATCH = 500
MAX_DEVICES_PER_HOST = 256
MAX_PIDS_PER_REPORT = 200
MAX_PROBLEMS = 100
# Of a problem or a report; what is longer is cut before it is sent.
MAX_TEXT = 500
# A host clock that differs from the server's by more is a problem that somebody should look at.
MAX_SKEW_S = 2.0

Mode = Literal["observe", "warn", "enforce"]
UnbookedUse = Literal["deny", "allow"]
UnattributedContainers = Literal["report", "stop"]
Health = Literal["ok", "stale", "lost", "unknown"]
DeviceKind = Literal["gpu", "mig"]

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
ShortText = Annotated[str, msgspec.Meta(max_length=200)]
# The next one is -1, which means "nobody in particular" to the kernel.
LAST_UID = 2**32 - 2
Uid = Annotated[int, msgspec.Meta(ge=0, le=LAST_UID)]
# As large as a database can hold: anything beyond is nonsense, and must not become a server error.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Instant = Annotated[datetime, msgspec.Meta(tz=True)]
# Outside of these a clock is broken, and arithmetic could leave what `datetime` can hold.
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def check_instants(*instants: datetime | None) -> None:
    """Refuses what no working clock says.

    Raises:
        ValueError: one lies too far away.
    """
    if any(one is not None and not _EARLIEST <= one < _LATEST for one in instants):
        raise ValueError("instants must lie between the years 1970 and 2200")


# Waits that can be added to any such instant; who means "for ever" writes years.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Hours = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


def host_queue(name: str) -> str:
    """The queue on which the host of that name hears nudges."""
    return f"host.{name}"


def host_key_prefix(name: str) -> str:
    """What every key of that host in the broker begins with; its broker user may touch no other."""
    return f"{host_queue(name)}:"


class Shape(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base: immutable, fields by name, defaults left out on the wire; unknown fields are ignored."""


# Always on the wire, unlike other defaults: the receiver may have another one.
_VERSION = msgspec.field(default_factory=lambda: VERSION)


class Grant(Shape, frozen=True, kw_only=True):
    """A person's right to use one device from ``start`` (in) to ``end`` (out)."""

    booking: Count
    device: Id
    unix_name: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    start: Instant
    end: Instant
    expected_uid: Uid | None = None
    early_signal: bool = False
    # The server extends it shortly before its end, again and again, while nobody else has booked.
    keep_if_free: bool = False
    kind: Literal["normal", "service"] = "normal"

    def __post_init__(self) -> None:
        check_instants(self.start, self.end)


class Hold(Shape, frozen=True, kw_only=True):
    """Until when nothing is changed on a host and nobody is stopped there, and why; None: until resumed."""

    reason: ShortText = ""
    until: Instant | None = None

    def __post_init__(self) -> None:
        check_instants(self.until)

    def holds(self, now: datetime) -> bool:
        return self.until is None or now < self.until


class HostSettings(Shape, frozen=True, kw_only=True):
    """How a host is to behave; chosen by the administrator, sent with the plan."""

    mode: Mode = "observe"
    unbooked_use: UnbookedUse = "deny"
    # Seconds from the first signal to SIGKILL when nobody follows on the device ...
    grace_s: Seconds = 60.0
    # ... and never longer than this once the next person's grant has begun.
    grace_followed_s: Seconds = 15.0
    # Seconds from the first warning of an intruder to the first signal.
    intruder_grace_s: Seconds = 60.0
    # Hours that a process older than the switch to `enforce` may stay while nobody needs its device.
    adopt_h: Hours = 72.0
    # More (device, person) pairs than this to stop in one tick, without a lease end each: hold fire.
    kill_budget: Annotated[int, msgspec.Meta(ge=0)] = 8
    # Only these devices are ever gated or have holders stopped.
    managed: tuple[str, ...] = ()
    always_open_uids: tuple[Uid, ...] = ()
    exempt_uids: tuple[Uid, ...] = ()
    # What becomes of containers of no booking on a device that somebody else's booking needs.
    unattributed_containers: UnattributedContainers = "report"
    # Devices that are gated although they drive a display.
    forced_displays: tuple[str, ...] = ()
    hold: Hold | None = None
    # Whether everybody on the host may read who holds and who booked a device.
    show_owners: bool = True
    # Seconds between two samples while nobody watches; once a second while somebody does.
    sample_s: Annotated[float, msgspec.Meta(ge=1, le=3600)] = 10.0


class Plan(Shape, frozen=True, kw_only=True):
    """All grants of one host with end > as_of - 24 h, earliest first, and how to treat them.

    ``complete_until`` is the start of the first grant that was left out, or None if none was.
    ``cancelled`` are bookings that were given up around their start: a host that had begun one of them
    need not doubt that its grants are gone.
    ``epoch`` changes only when an operator has restored an older database on purpose.
    """

    wire: int = _VERSION
    host: str
    epoch: Id
    etag: str
    as_of: Instant
    server_time: Instant
    grants: tuple[Grant, ...]
    settings: HostSettings
    complete_until: Instant | None = None
    cancelled: tuple[Count, ...] = ()

    def __post_init__(self) -> None:
        check_instants(self.as_of, self.server_time, self.complete_until)


class DeviceInfo(Shape, frozen=True, kw_only=True):
    """One device as its vendor names it. ``minor`` is None where no device node exists."""

    uuid: Id
    vendor: Annotated[str, msgspec.Meta(max_length=32)]
    kind: DeviceKind = "gpu"
    index: Annotated[int, msgspec.Meta(ge=0, le=4096)]
    model: ShortText
    memory_bytes: Annotated[int, msgspec.Meta(ge=0, le=2**50)] | None = None
    minor: Annotated[int, msgspec.Meta(ge=0, le=2**20)] | None = None
    bus_id: Annotated[str, msgspec.Meta(max_length=64)] = ""
    node_paths: tuple[ShortText, ...] = ()
    parent: Id | None = None
    # Whether it drives a display now; None where the vendor cannot say.
    display: bool | None = None
    # Whether its parts are used in its place. Whoever uses one opens its node too, so that stays open.
    divided: bool = False


class Inventory(Shape, frozen=True, kw_only=True):
    """Body of ``PUT /api/v1/agent/inventory``: every device that the host sees now."""

    wire: int = _VERSION
    agent_version: Annotated[str, msgspec.Meta(max_length=32)]
    devices: Annotated[tuple[DeviceInfo, ...], msgspec.Meta(max_length=MAX_DEVICES_PER_HOST)]


class ProcessUse(Shape, frozen=True, kw_only=True):
    """One process on a device. ``unix_name`` is None when the host cannot name the uid.

    ``graphics_only``: the vendor lists it as drawing and not as computing; it is never stopped.
    ``protected`` says why else it never is. ``container`` is the full id of its container.
    """

    pid: Count
    uid: Uid | None = None
    unix_name: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    memory_bytes: Count | None = None
    graphics_only: bool = False
    started: Instant | None = None
    container: Id | None = None
    protected: ShortText | None = None

    def __post_init__(self) -> None:
        check_instants(self.started)


class Sample(Shape, frozen=True, kw_only=True):
    """One reading of a device. ``processes=None`` means unreadable; ``()`` means nobody.

    ``last_busy`` is the last instant at which the device computed (>= 5 %) or its memory grew.
    ``haunted``: it computes or keeps memory, and nobody's process is on it.
    """

    uuid: Id
    at: Instant
    health: Health = "ok"
    utilization_percent: float | None = None
    memory_used_bytes: Count | None = None
    memory_reserved_bytes: Count | None = None
    memory_total_bytes: Count | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    fan_percent: float | None = None
    sm_clock_mhz: float | None = None
    throttle: ShortText | None = None
    ecc_uncorrected: Count | None = None
    processes: Annotated[tuple[ProcessUse, ...], msgspec.Meta(max_length=2_000)] | None = None
    last_busy: Instant | None = None
    haunted: bool = False

    def __post_init__(self) -> None:
        check_instants(self.at, self.last_busy)


class HealthProblem(Shape, frozen=True, kw_only=True):
    """Something on the host that an administrator should know; ``text`` is a plain sentence."""

    code: Annotated[str, msgspec.Meta(max_length=64)]
    text: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)]
    device: Id | None = None


class Samples(Shape, frozen=True, kw_only=True):
    """Body of ``POST /api/v1/agent/samples``: the newest reading of each device; the heartbeat."""

    wire: int = _VERSION
    at: Instant
    agent_version: Annotated[str, msgspec.Meta(max_length=32)]
    # The mode the agent acts in: a local file may have tightened the plan's.
    mode: Mode
    # Host clock minus server clock at the last exchange.
    clock_offset_s: float | None = None
    health: Annotated[tuple[HealthProblem, ...], msgspec.Meta(max_length=MAX_PROBLEMS)] = ()
    devices: Annotated[tuple[Sample, ...], msgspec.Meta(max_length=MAX_DEVICES_PER_HOST)] = ()


class SamplesAnswer(Shape, frozen=True, kw_only=True):
    """What a heartbeat hears back. ``watched``: somebody looks at live pages; sample at 1 Hz."""

    plan_etag: str
    server_time: Instant
    watched: bool = False

    def __post_init__(self) -> None:
        check_instants(self.server_time)


ReportKind = Literal[
    "opened",  # the gate opened for the grant's person
    "delayed",  # the grant has begun, but somebody foreign is still on the device
    "early_signalled",  # SIGUSR1 was sent before the end, as the booking had asked
    "closed",  # the gate closed at the grant's end
    "warned",  # the person was told that the grant ends soon, or that they have none
    "intruder",  # somebody without a grant uses the device
    "overrun",  # somebody whose grant has ended still uses the device
    "signalled",  # SIGTERM and SIGCONT were sent
    "killed",  # SIGKILL was sent
    "gone",  # the next look no longer saw the person on the device
    "stuck",  # SIGKILL did not end it; the device needs attention
    "drift",  # somebody else changed the gate; it was repaired
    "drift_given_up",  # repaired too often; left alone
    "no_account",  # the grant's name is unknown here, or its uid is not the expected one
    "hold_fire",  # more to stop at once than the kill budget allows
    "grant_vanished",  # a running grant left the plan without an end
    "overlap",  # two bookings' grants overlap on a device; the earlier-starting one is honoured
    "plan_refused",  # a plan could not be used; the stored one stands
    "device_lost",  # the vendor no longer reaches the device
    "device_back",  # it does again
    "agent_started",  # the agent began to enforce the stored plan
    "granted_by_hand",  # root on the host gave somebody a device for a while
    "held",  # root on the host, or an operator, has the agent change nothing and stop nobody
    "resumed",  # it acts again
    "yielded",  # root on the host has the agent let go of a device
    "taken_back",  # the agent looks after it again
    "adopted",  # whatever ran on the host at that instant may stay until somebody books its device
    "released_host",  # root on the host has put every node back as it was
]


class Report(Shape, frozen=True, kw_only=True):
    """What a host saw or did, once. ``id`` is unique per host; a repeat is stored once."""

    id: Annotated[str, msgspec.Meta(min_length=8, max_length=64, pattern=r"^[0-9A-Za-z_-]+$")]
    at: Instant
    kind: ReportKind
    device: Id | None = None
    booking: Count | None = None
    unix_name: Annotated[str, msgspec.Meta(max_length=64)] | None = None
    uid: Uid | None = None
    pids: Annotated[tuple[Count, ...], msgspec.Meta(max_length=MAX_PIDS_PER_REPORT)] = ()
    # Seconds between the edge of the grant and this action, where there is such an edge.
    latency_s: float | None = None
    text: Annotated[str, msgspec.Meta(max_length=MAX_TEXT)] = ""


class Reports(Shape, frozen=True, kw_only=True):
    """Body of ``POST /api/v1/agent/reports``."""

    wire: int = _VERSION
    reports: Annotated[tuple[Report, ...], msgspec.Meta(max_length=MAX_REPORTS_PER_BATCH)]


class RejectedReport(Shape, frozen=True, kw_only=True):
    id: str
    code: str


class ReportsAnswer(Shape, frozen=True, kw_only=True):
    """Both lists leave the spool: a rejected report will not become acceptable by waiting."""

    stored: tuple[str, ...] = ()
    rejected: tuple[RejectedReport, ...] = ()


def plan_etag(
    epoch: str,
    grants: tuple[Grant, ...],
    settings: HostSettings,
    *,
    complete_until: datetime | None = None,
) -> str:
    """The same for the same epoch, grants, settings and completeness, whenever it is computed."""
    body = msgspec.json.encode((epoch, grants, settings, complete_until))
    return sha256(body).hexdigest()[:32]
