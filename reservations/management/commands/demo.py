"""Demo data for `make up`: people, two simulated hosts, and, once their agents report, bookings and jobs.

Every step looks first and adds only what is missing, so that it can be run again at any time.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from reservations import clock
from reservations.core.errors import DomainError
from reservations.core.period import next_on_grid
from reservations.models import Account, Booking, Device, Host, Membership, Team, User
from reservations.services import bookings, hosts
from reservations.services.actors import BERTH, Actor
from reservations.services.wishes import Wish

PEOPLE: Final = {"alice": "Alice Weber", "bob": "Bob Okafor", "carol": "Carol 王"}
OPERATOR: Final = "admin"
# Short graces, so that a demo tells its story in seconds.
QUICK: Final = {"grace_s": 5, "grace_followed_s": 5, "intruder_grace_s": 5}
HOSTS: Final = {
    "sim-a": {**QUICK, "unbooked_use": "deny"},
    "sim-b": {**QUICK, "unbooked_use": "allow"},
}


@dataclass(frozen=True)
class Story:
    """A booking and, where ``profile`` is given, the job that its owner runs on each of its devices."""

    owner: str
    host: str
    indexes: tuple[int, ...]
    begins_in_h: float
    hours: float
    purpose: str
    profile: str = ""
    kind: str = "normal"


STORIES: Final = (
    Story("alice", "sim-a", (1,), 0, 3, "fine-tune the segmenter", "train"),
    Story("carol", "sim-a", (2,), 0, 2, "notebook: attention maps", "notebook"),
    Story("bob", "sim-b", (0, 1), 0, 4, "sweep 3, seeds 1 to 8", "train"),
    Story("carol", "sim-b", (2,), 0, 1.5, "evaluation", "idle"),
    Story("bob", "sim-a", (1, 2), 4, 6, "overnight run"),
    Story("alice", "sim-a", (0,), 20, 4, "ablation"),
    Story("carol", "sim-a", (3,), 6, 3, "course: lab session"),
    Story("carol", "sim-a", (3,), 11, 5, "course: exercises"),
    Story("alice", "sim-a", (1, 2), 12, 5, "final model, two seeds"),
    Story("alice", "sim-b", (0,), 5, 3, "data preparation"),
    Story("carol", "sim-b", (1,), 6, 4, "render figures"),
    Story("alice", "sim-b", (2,), 3, 6, "distillation"),
    Story("bob", "sim-b", (3,), 2, 7, "checkpoints of sweep 2"),
    Story("bob", "sim-b", (0, 1), 12, 6, "sweep 4"),
    Story(OPERATOR, "sim-b", (3,), 14, 2, "replace a fan", kind="maintenance"),
)


class Command(BaseCommand):
    help = "Adds demo people and hosts; with --bookings also bookings and jobs on the simulated devices."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bookings", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["bookings"]:
            for name in HOSTS:
                _enable(Host.objects.get(name=name))
            for story in STORIES:
                _tell(story, now=clock.now())
            return
        for username, name in PEOPLE.items():
            _person(username, display_name=name, time_zone=settings.SITE_TIME_ZONE)
        _person(OPERATOR, display_name="Admin", is_operator=True, is_superuser=True)
        _team("vision", manager="alice", members=("bob",))
        for name, how in HOSTS.items():
            _host(name, how)


def _person(username: str, **fields: Any) -> None:
    user, made = User.objects.get_or_create(username=username, defaults=fields)
    if made:
        user.set_password(username)
        user.save(update_fields=["password"])
    if username != OPERATOR:
        Account.objects.get_or_create(user=user, host=None, defaults={"unix_name": username})


def _team(name: str, *, manager: str, members: tuple[str, ...]) -> None:
    team, _ = Team.objects.get_or_create(name=name)
    for username in (manager, *members):
        Membership.objects.get_or_create(
            team=team,
            user=User.objects.get(username=username),
            defaults={"is_manager": username == manager},
        )


def _host(name: str, how: dict[str, Any]) -> None:
    """Register the host and leave its token where its worker reads it."""
    path = Path(settings.DATA) / "sim" / name / "token"
    host = Host.objects.filter(name=name).first()
    if host is None:
        _, token = hosts.add_host(
            name, actor=BERTH, now=clock.now(), mode=Host.Mode.ENFORCE, settings=how
        )
    elif not path.exists():
        token = hosts.rotate_token(host, actor=BERTH, now=clock.now())
    else:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(token + "\n")


def _enable(host: Host) -> None:
    """Make the host's devices bookable, once its agent has said which it has."""
    for _ in range(60):
        if host.devices.exists():
            hosts.enable_devices(host, None, actor=BERTH, now=clock.now())
            return
        time.sleep(0.5)  # noqa: TID251 -- a set-up command that waits for an agent
    raise CommandError(f"{host.name} did not report its devices within 30 s")


def _tell(story: Story, *, now: datetime) -> None:
    standing = Booking.objects.filter(
        purpose=story.purpose, end__gt=now, state=Booking.State.CONFIRMED
    ).first()
    booking = standing or _book(story, now=now)
    if booking is not None and story.profile and booking.start <= now + timedelta(seconds=1):
        for index in story.indexes:
            _start_job(story, index)


def _book(story: Story, *, now: datetime) -> Booking | None:
    """The story's booking, or None when somebody has taken the place meanwhile."""
    grid = timedelta(minutes=settings.BOOKING_GRID_MINUTES)
    start = next_on_grid(now + timedelta(hours=story.begins_in_h), grid)
    devices = Device.objects.filter(host__name=story.host, index__in=story.indexes)
    wish = Wish(
        devices=tuple(devices.order_by("index").values_list("uuid", flat=True)),
        start=start if story.begins_in_h else now,
        duration=timedelta(hours=story.hours),
        purpose=story.purpose,
        kind=story.kind,
    )
    owner = User.objects.get(username=story.owner)
    try:
        return bookings.book(wish, actor=Actor.of(owner, source="demo"), now=now)
    except DomainError:
        return None


def _start_job(story: Story, index: int) -> None:
    """Start the owner's job once the gate is open for them; the agent needs a moment."""
    command = [
        sys.executable, "-m", "workers.host.simjob", "start", "--respect-gate", "--user", story.owner,
        "--host", story.host, "--index", str(index), "--profile", story.profile,
    ]  # fmt: skip
    environment = {**os.environ, "BERTH_DATA": str(settings.DATA)}
    for _ in range(20):
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603
        if done.returncode == 0:
            return
        time.sleep(0.5)  # noqa: TID251 -- a set-up command that waits for an agent
    raise CommandError(f"{story.host} did not open device {index} for {story.owner} within 10 s")
