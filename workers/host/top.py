"""``berth-host top``: the devices of this host, who has them and until when, for everybody, offline."""

import contextlib
import os
import select
import shutil
import sys
import termios
import textwrap
import tty
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from workers.host import public
from workers.host.plain_text import plain
from workers.host.public import PublicDevice, PublicHost

EVERY_S = 1.0
NARROWEST = 60
GIB = 2**30
MAX_ERROR = 500
UNKNOWN = "?"
# Move to the corner, and clear what is behind what is written.
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
# The screen as it was comes back at the end.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


@dataclass(frozen=True, slots=True)
class _Column:
    """``width`` 0: it gets what is left. Those with a larger ``needs`` only on wider terminals."""

    heading: str
    width: int
    of: Callable[[PublicDevice], str]
    right: bool = False
    needs: int = 0

    def cell(self, text: str, width: int) -> str:
        cut = plain(text, limit=width)
        return cut.rjust(width) if self.right else cut.ljust(width)


def page(content: PublicHost, *, age_s: float, width: int) -> list[str]:
    """The lines to show, none wider than ``width``."""
    width = max(width, NARROWEST)
    lines = [f"{content.host}  mode {content.mode}  {content.url}"]
    if age_s > content.stale_after_s:
        lines.append(f"data is {age_s:.0f} s old: the agent does not run")
    lines += ["", *_table(content.devices, width)]
    lines += ["", *_of_processes(content)]
    return [plain_line(line, width) for line in lines]


def plain_line(line: str, width: int) -> str:
    """Cut, without the blanks of its columns being lost."""
    return "".join(one for one in line if one.isprintable())[:width].rstrip()


def _table(devices: Sequence[PublicDevice], width: int) -> list[str]:
    columns = [column for column in _COLUMNS if width >= column.needs]
    left = width - sum(column.width + 1 for column in columns) + 1
    widths = [column.width or max(left, 4) for column in columns]

    def line(texts: Sequence[str]) -> str:
        cells = zip(columns, texts, widths, strict=True)
        return " ".join(column.cell(text, width) for column, text, width in cells)

    heading = line([column.heading for column in columns])
    return [heading, *(line([column.of(one) for column in columns]) for one in devices)]


def _of_processes(content: PublicHost) -> list[str]:
    lines = ["GPU     PID    MEMORY USER"]
    for device in content.devices:
        lines += [
            f"{device.index:3} {process.pid:7} {_size(process.memory_bytes):>9} "
            f"{plain(process.user or '-', limit=32)}"
            for process in device.processes or ()
        ]
        if device.processes is None:
            lines.append(f"{device.index:3}       {UNKNOWN}")
    return lines if lines[1:] else ["nobody computes"]


def _size(amount: int | None) -> str:
    return UNKNOWN if amount is None else f"{amount / GIB:.1f} GiB"


def _memory(device: PublicDevice) -> str:
    used, total = device.memory_used_bytes, device.memory_total_bytes
    shown = [UNKNOWN if one is None else f"{one / GIB:.1f}" for one in (used, total)]
    return "/".join(shown) + " GiB"


def _figure(number: float | None, unit: str) -> str:
    return UNKNOWN if number is None else f"{number:.0f} {unit}"


def _people(device: PublicDevice) -> str:
    """Who has booked it; in brackets who else is on it."""
    booked = device.booked_by or ()
    others = [name for name in device.held_by or () if name not in booked]
    shown = [*booked, *(f"({name})" for name in others)]
    return " ".join(shown) or "-"


def _clock(at: datetime | None) -> str:
    if at is None:
        return "-"
    local = at.astimezone()
    return f"{local:%a %H:%M}"


_COLUMNS: tuple[_Column, ...] = (
    _Column("GPU", 3, lambda one: str(one.index), right=True),
    _Column("MODEL", 0, lambda one: one.model.removeprefix("NVIDIA ")),
    _Column("UTIL", 5, lambda one: _figure(one.utilization_percent, "%"), right=True),
    _Column("MEMORY", 15, _memory, right=True),
    _Column("TEMP", 5, lambda one: _figure(one.temperature_c, "C"), right=True, needs=90),
    _Column("POWER", 6, lambda one: _figure(one.power_w, "W"), right=True, needs=90),
    _Column("STATE", 12, lambda one: one.verdict.removeprefix("needs_").replace("_", " ")),
    _Column("WHO", 12, _people),
    _Column("UNTIL", 9, lambda one: _clock(one.booked_until)),
    _Column("NEXT", 9, lambda one: _clock(one.next_booking_at), needs=100),
    _Column("UUID", 40, lambda one: one.uuid, needs=160),
)


def show(folder: Path, *, once: bool, wall: Callable[[], datetime]) -> int:
    """Until ``q`` or Ctrl-C on a terminal; else once. 1 if what was shown last is stale.

    Raises:
        Unavailable: there is nothing to show.
    """
    if once or not (sys.stdin.isatty() and sys.stdout.isatty()):
        content, age_s = public.read(folder, now=wall())
        lines = page(content, age_s=age_s, width=shutil.get_terminal_size().columns)
        sys.stdout.write("\n".join(lines) + "\n")
        return int(age_s > content.stale_after_s)
    with _screen(), contextlib.suppress(KeyboardInterrupt):
        while True:
            size = shutil.get_terminal_size()
            lines = _lines(folder, wall(), width=size.columns)[: size.lines - 1]
            sys.stdout.write(_HOME + "".join(f"{line}{_CLEAR_LINE}\n" for line in lines))
            sys.stdout.write(_CLEAR_BELOW)
            sys.stdout.flush()
            if _quit_is_pressed():
                break
    return 0


def _lines(folder: Path, now: datetime, *, width: int) -> list[str]:
    """Also says why there is nothing: it may come."""
    try:
        content, age_s = public.read(folder, now=now)
    except public.Unavailable as error:
        return textwrap.wrap(plain(str(error), limit=MAX_ERROR), width)
    return page(content, age_s=age_s, width=width)


def _quit_is_pressed() -> bool:
    """Within the time until the next picture; a terminal that has gone counts as well."""
    if not select.select([sys.stdin], [], [], EVERY_S)[0]:
        return False
    typed = os.read(sys.stdin.fileno(), 64)
    return not typed or b"q" in typed or b"Q" in typed


@contextlib.contextmanager
def _screen() -> Iterator[None]:
    """A screen of its own, on which single keys are read."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal)
    sys.stdout.write(_ENTER)
    try:
        yield
    finally:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)
