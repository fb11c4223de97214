"""``manage.py simjob start|list|stop …``: jobs on simulated devices, with this site's data folder."""

import argparse
import os
import subprocess
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    help = "Starts, lists and stops jobs on simulated devices (python -m workers.host.simjob)."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("arguments", nargs=argparse.REMAINDER)

    def handle(self, *, arguments: list[str], **options: Any) -> None:
        # A process of its own: the control plane imports nothing of a host's worker.
        done = subprocess.run(  # noqa: S603 -- our own module, arguments as a list
            [sys.executable, "-m", "workers.host.simjob", *arguments],
            cwd=settings.ROOT,
            env={**os.environ, "BERTH_DATA": str(settings.DATA)},
            check=False,
        )
        if done.returncode:
            raise CommandError("simjob did not do it", returncode=done.returncode)
