"""Times in templates, in the zone that the middleware made the current one."""

from datetime import datetime
from zoneinfo import ZoneInfo

from django import template
from django.utils import timezone

from reservations.core.period import Period
from webapp import walltime

register = template.Library()


def _zone() -> ZoneInfo:
    return ZoneInfo(timezone.get_current_timezone_name())


@register.filter
def day_time(instant: datetime) -> str:
    return walltime.moment_text(instant, _zone())


@register.filter
def from_text(instant: str) -> datetime:
    """The instant that a row for machines carries."""
    return datetime.fromisoformat(instant)


@register.filter
def to_the_second(instant: datetime) -> str:
    local = instant.astimezone(_zone())
    return f"{walltime.day_text(instant, _zone())} {local:%H:%M:%S}"


@register.simple_tag
def span(start: datetime, end: datetime) -> str:
    return walltime.span_text(start, end, _zone())


@register.simple_tag
def duration(start: datetime, end: datetime) -> str:
    return walltime.duration_text(Period(start, end).duration)
