"""Move the bookings of a card to the one that has taken its place, and retire the old one."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from reservations import clock
from reservations.core.errors import DomainError
from reservations.services import devices
from reservations.services.actors import COMMAND_LINE


class Command(BaseCommand):
    help = __doc__

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("old", help="UUID of the card that is gone")
        parser.add_argument("new", help="UUID of the card in its place, which its host has named")

    def handle(self, *args: Any, **options: Any) -> None:
        old, new = options["old"], options["new"]
        try:
            clashes = devices.replace_device(old, new, actor=COMMAND_LINE, now=clock.now())
        except DomainError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{new} has taken the place of {old}, which is retired.\n")
        for booking in clashes:
            self.stdout.write(
                f"Booking {booking} could not move: {new} is booked by somebody else then. "
                "Its people have been told.\n"
            )
