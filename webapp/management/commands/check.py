"""Django's `check`, which can also answer in JSON: ``manage.py check --deploy --json``."""

import json
import sys
from typing import Any

from django.core import checks
from django.core.management.base import CommandParser
from django.core.management.commands.check import Command as Check


class Command(Check):
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--json", action="store_true", help="one object for each fault")

    def handle(self, *app_labels: Any, **options: Any) -> None:
        if not options["json"]:
            super().handle(*app_labels, **options)
            return
        found = checks.run_checks(
            include_deployment_checks=options["deploy"], databases=options["databases"]
        )
        shown = [fault for fault in found if not fault.is_silenced()]
        self.stdout.write(json.dumps([_row(fault) for fault in shown], indent=1))
        limit = getattr(checks, options["fail_level"])
        if any(fault.level >= limit for fault in shown):
            sys.exit(1)


def _row(fault: checks.CheckMessage) -> dict[str, Any]:
    levels = {checks.INFO: "info", checks.WARNING: "warning"}
    level = "error" if fault.level >= checks.ERROR else levels.get(fault.level, "debug")
    return {"id": fault.id, "level": level, "text": fault.msg, "hint": fault.hint}
