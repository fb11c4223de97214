"""The only place of the control plane that reads the clock."""

from datetime import UTC, datetime


def now() -> datetime:
    """The present instant, aware, in UTC."""
    return datetime.now(UTC)  # noqa: TID251 -- this is the one reader
