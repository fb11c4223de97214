"""Let Berth manage devices of a host, and people book them."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reservations import clock
from reservations.core.errors import DomainError
from reservations.models import Host
from reservations.services import hosts
from reservations.services.actors import COMMAND_LINE


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("host")
        parser.add_argument("uuids", nargs="*", help="UUIDs of its devices")
        parser.add_argument("--all", action="store_true", help="all that the host has named")

    def handle(self, *args: Any, **options: Any) -> None:
        host = Host.objects.filter(name=options["host"]).first()
        if host is None:
            raise CommandError(f"There is no host {options['host']}.")
        if bool(options["uuids"]) == options["all"]:
            raise CommandError("Name the devices, or say --all.")
        uuids = None if options["all"] else options["uuids"]
        try:
            devices = hosts.enable_devices(host, uuids, actor=COMMAND_LINE, now=clock.now())
        except DomainError as error:
            raise CommandError(str(error)) from error
        if not devices:
            self.stdout.write(
                f"{host.name} has not named any devices yet. Is its worker running?\n"
            )
        for device in devices:
            how = "can be booked" if device.bookable else "has parts, which can be booked"
            self.stdout.write(f"{device.uuid}  {device.name}: {how}\n")
