"""Wall-clock times of a zone: what a form field means, and how an instant is told."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.formats import date_format


def instants_of(wall: datetime, zone: ZoneInfo) -> list[datetime]:
    """The instants at which a clock of the zone shows ``wall`` (naive), in UTC.

    None in the hour that the zone skips, two (earlier first) in the hour that it repeats, else one.
    """
    candidates = {wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return sorted(one for one in candidates if one.astimezone(zone).replace(tzinfo=None) == wall)


def offset_text(instant: datetime, zone: ZoneInfo) -> str:
    """``UTC``, ``UTC+8``, ``UTC+5:30``."""
    offset = instant.astimezone(zone).utcoffset() or timedelta(0)
    minutes = int(offset.total_seconds()) // 60
    if minutes == 0:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'−' if minutes < 0 else '+'}{hours}{f':{rest:02d}' if rest else ''}"


def zone_text(instant: datetime, zone: ZoneInfo) -> str:
    """``Asia/Shanghai (UTC+8)``, ``UTC``."""
    name, offset = zone.key.replace("_", " "), offset_text(instant, zone)
    return name if name == offset else f"{name} ({offset})"


def time_text(instant: datetime, zone: ZoneInfo) -> str:
    """``14:00``, or ``02:30 (UTC+2)`` where the clock shows that time twice."""
    local = instant.astimezone(zone)
    text = local.strftime("%H:%M")
    if len(instants_of(local.replace(tzinfo=None, fold=0), zone)) > 1:
        return f"{text} ({offset_text(instant, zone)})"
    return text


def day_text(instant: datetime, zone: ZoneInfo) -> str:
    """``Tue 1 Dec``, in the language that is active."""
    return date_format(instant.astimezone(zone), "D j M")


def moment_text(instant: datetime, zone: ZoneInfo) -> str:
    """``Tue 1 Dec 14:00``."""
    return f"{day_text(instant, zone)} {time_text(instant, zone)}"


def span_text(start: datetime, end: datetime, zone: ZoneInfo) -> str:
    """``Tue 1 Dec 14:00 – 18:00``; the second day only when it differs."""
    same_day = start.astimezone(zone).date() == end.astimezone(zone).date()
    last = time_text(end, zone)
    if not same_day:
        last = f"{day_text(end, zone)} {last}"
    return f"{day_text(start, zone)} {time_text(start, zone)} – {last}"


def duration_text(duration: timedelta) -> str:
    """``45 min``, ``4 h``, ``4 h 30 min``, ``2 d 3 h``: elapsed time, whatever the clock did."""
    minutes = round(duration.total_seconds() / 60)
    days, rest = divmod(minutes, 1440)
    hours, minutes = divmod(rest, 60)
    parts = [(days, "d"), (hours, "h"), (minutes, "min")]
    return " ".join(f"{count} {unit}" for count, unit in parts if count) or "0 min"
