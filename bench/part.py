"""One part of the bench in a process of its own: ``python -m bench.part NAME FOLDER [--quick]``.

The environment names its database; the figures go to ``FOLDER/NAME.json``.
"""

import sys
from importlib import import_module
from pathlib import Path

import django
import msgspec

from bench.site import Site

# In the order of the table. Each module has ``measure(site)``, which yields its figures.
PARTS = {
    "service": "bench.service",
    "rest": "bench.rest",
    "contested": "bench.contested",
    "calendar": "bench.calendar_week",
    "slots": "bench.free_slots",
    "holders": "bench.holders",
    "agent": "bench.agent_cost",
    "nudge": "bench.nudge",
    "slot-end": "bench.slot_end",
    "slot-end-in-trouble": "bench.slot_end_in_trouble",
    "frozen-redis": "bench.frozen_redis",
}


def main(name: str, folder: str, *options: str) -> None:
    django.setup()
    site = Site(folder=Path(folder), quick="--quick" in options)
    figures = list(import_module(PARTS[name]).measure(site))
    (site.folder / f"{name}.json").write_bytes(msgspec.json.encode(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
