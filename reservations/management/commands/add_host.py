"""Register a GPU host: prints its token, once, and the command that starts its worker."""

from argparse import ArgumentParser
from typing import Any

import msgspec
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from reservations import clock
from reservations.core.errors import DomainError
from reservations.models import Host
from reservations.services import hosts
from reservations.services.actors import COMMAND_LINE


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--mode", default="observe", choices=Host.Mode.values)
        parser.add_argument(
            "--set",
            dest="overrides",
            nargs="*",
            default=[],
            metavar="NAME=VALUE",
            help="such as grace_s=30 unbooked_use=allow",
        )
        parser.add_argument(
            "--rotate", action="store_true", help="a new token for a host that exists already"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["name"]
        try:
            token = _rotated(name) if options["rotate"] else _added(name, options)
        except DomainError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Token of {name} (it is not shown again):\n  {token}\n\n")
        self.stdout.write("Start the host's worker, as root on that host, with:\n")
        self.stdout.write(
            f"  BERTH_HOST_NAME={name} BERTH_URL={settings.BERTH_URL} "
            f"BERTH_HOST_TOKEN={token} python -m workers.host run\n\n"
        )
        self.stdout.write(
            f"Once it has named its devices, let people book them:\n"
            f"  python manage.py enable_devices {name} --all\n"
        )


def _added(name: str, options: dict[str, Any]) -> str:
    _, token = hosts.add_host(
        name,
        actor=COMMAND_LINE,
        now=clock.now(),
        mode=options["mode"],
        settings=dict(_setting(word) for word in options["overrides"]),
    )
    return token


def _rotated(name: str) -> str:
    host = Host.objects.filter(name=name).first()
    if host is None:
        raise CommandError(f"There is no host {name}.")
    return hosts.rotate_token(host, actor=COMMAND_LINE, now=clock.now())


def _setting(word: str) -> tuple[str, Any]:
    """``grace_s=30`` and ``unbooked_use=allow``: a JSON value, or else a word."""
    name, equals, value = word.partition("=")
    if not equals:
        raise CommandError(f"--set {word}: expected NAME=VALUE")
    try:
        return name, msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value
