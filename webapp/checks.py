"""Settings that Berth cannot keep its promises with; `manage.py check` and `migrate` refuse them."""

from django.conf import settings
from django.core import checks

_PUBSUB = "channels_redis.pubsub."


@checks.register
def check_transactions(**_: object) -> list[checks.CheckMessage]:
    """Services open durable transactions of their own, which refuse to nest."""
    return [
        checks.Error(
            f"ATOMIC_REQUESTS of database {name!r} must be off: "
            "bookings are written in transactions of their own.",
            id="webapp.E001",
        )
        for name, database in settings.DATABASES.items()
        if database.get("ATOMIC_REQUESTS")
    ]


@checks.register
def check_hosts(**_: object) -> list[checks.CheckMessage]:
    if "*" not in settings.ALLOWED_HOSTS:
        return []
    return [
        checks.Error(
            'ALLOWED_HOSTS must name the site\'s hosts: with "*" any other site may open WebSockets '
            "in its visitors' names.",
            id="webapp.E002",
        )
    ]


@checks.register
def check_channel_layers(**_: object) -> list[checks.CheckMessage]:
    return [
        checks.Error(
            f"Channel layer {name!r} must be channels_redis.pubsub.RedisPubSubChannelLayer: "
            "the other Redis layer goes deaf after a restart of Redis.",
            id="webapp.E003",
        )
        for name, layer in settings.CHANNEL_LAYERS.items()
        if _is_deaf(str(layer["BACKEND"]))
    ]


def _is_deaf(backend: str) -> bool:
    return backend.startswith("channels_redis.") and not backend.startswith(_PUBSUB)
