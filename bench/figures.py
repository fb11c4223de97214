"""A measured figure beside its reference of the same run: machines are noisy, ratios less so."""

import json
import math
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Figure:
    """``value`` and ``reference`` in ``unit``; ``ratio`` is value / reference; ``target`` in words."""

    name: str
    value: float
    unit: str
    reference_name: str
    reference: float | None
    target: str
    met: bool

    @property
    def ratio(self) -> float | None:
        return self.value / self.reference if self.reference else None


def timed_ms(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def alternately_ms(
    value: Callable[[], object], reference: Callable[[], object], *, repeat: int
) -> tuple[list[float], list[float]]:
    """Wall times of both in milliseconds, taken in turns, so that a busy moment burdens both."""
    value()
    reference()
    times = [(timed_ms(value), timed_ms(reference)) for _ in range(repeat)]
    return [one for one, _ in times], [other for _, other in times]


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def print_table(figures: Sequence[Figure]) -> None:
    width = max((len(figure.name) for figure in figures), default=0)
    for figure in figures:
        ratio = f"{figure.ratio:8.2f} ×" if figure.ratio is not None else " " * 10
        reference = f"{figure.reference:10.2f}" if figure.reference is not None else " " * 10
        print(
            f"{figure.name:{width}}  {figure.value:10.2f} {figure.unit:4} {reference}  {ratio}  "
            f"{'ok  ' if figure.met else 'MISS'}  {figure.target}  [{figure.reference_name}]"
        )


def write(figures: Sequence[Figure], path: Path) -> None:
    rows = [{**asdict(figure), "ratio": figure.ratio} for figure in figures]
    for row in rows:
        for key in ("value", "reference", "ratio"):
            row[key] = round(row[key], 3) if row[key] is not None else None
    machine = {
        "python": platform.python_version(),
        "system": platform.platform(terse=True),
        "processors": os.cpu_count(),
    }
    path.write_text(json.dumps({"machine": machine, "figures": rows}, indent=2) + "\n")
