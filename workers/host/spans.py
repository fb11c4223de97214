"""How long something takes or lasted, in words for people."""

from datetime import timedelta


def spoken(span: timedelta) -> str:
    """Rounded as one would say it."""
    seconds = round(span.total_seconds())
    if seconds < 90:
        return f"{max(seconds, 0)} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    return f"{round(minutes / 60)} h"
