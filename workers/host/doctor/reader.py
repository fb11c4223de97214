"""Collects all facts. Each root is an argument, so that a folder can stand for a whole machine."""

import ctypes
from collections.abc import Callable, Mapping
from datetime import datetime

from workers.host import clock
from workers.host.doctor.facts import Facts
from workers.host.doctor.reading import driver, machine, people, setup
from workers.host.doctor.reading.files import THIS_MACHINE, Roots


def read(
    environ: Mapping[str, str],
    *,
    roots: Roots = THIS_MACHINE,
    load: Callable[[str], object] = ctypes.CDLL,
    wall: Callable[[], datetime] = clock.wall,
) -> Facts:
    return Facts(
        machine=machine.read(roots),
        driver=driver.read(roots, load),
        people=people.read(roots),
        setup=setup.read(environ, roots, wall),
    )
