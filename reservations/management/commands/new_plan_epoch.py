"""After a restore from a backup: make hosts accept this database although its plans are older."""

from typing import Any

from django.core.management.base import BaseCommand

from reservations.services import plans


class Command(BaseCommand):
    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        epoch = plans.new_plan_epoch()
        self.stdout.write(f"New plan epoch: {epoch}. Hosts take it over at their next fetch.\n")
