"""Messages to people: written with the change (an outbox), delivered afterwards by channels.

A fact reaches a person once: its key is unique, whoever writes it and however often.
"""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from reservations.models import Notice, User
from reservations.notify.base import Channel, Message
from reservations.selectors import machines

logger = logging.getLogger(__name__)

# A delivery that takes longer than this has died; another worker takes the notice over.
LEASE = timedelta(minutes=1)
# What could not be delivered for so long is of no use any more.
USEFUL_FOR = timedelta(hours=24)
_BATCH = 200

Text = str | Callable[[User], str]


def tell(
    people: Iterable[int], kind: str, text: Text, *, key: str, now: datetime, **about: Any
) -> None:
    """Write one notice to each of the people, in their own words if ``text`` is a function.

    ``key`` names the fact; each person hears of it once. ``about``: the booking, if it is about one.
    """
    wanted = set(people)
    users = User.objects.in_bulk(wanted).values() if wanted else ()
    Notice.objects.bulk_create(
        [
            Notice(
                user=user,
                kind=kind,
                text=text if isinstance(text, str) else text(user),
                key=f"{key}:{user.pk}",
                created=now,
                **about,
            )
            for user in users
        ],
        ignore_conflicts=True,
    )


def tell_operators(kind: str, text: str, *, key: str, now: datetime, **about: Any) -> None:
    operators = machines.operators().values_list("pk", flat=True)
    tell(operators, kind, text, key=key, now=now, **about)


def deliver(channel: Channel, *, now: datetime) -> int:
    """Send what waits; says how many went out. What fails is tried again once its lease is over."""
    delivered = 0
    unclaimed = Q(claimed_at=None) | Q(claimed_at__lte=now - LEASE)
    waiting = Notice.objects.filter(
        unclaimed, delivered_at=None, created__gt=now - USEFUL_FOR
    ).select_related("user")
    for notice in waiting.order_by("created", "pk")[:_BATCH]:
        if not _claim(notice, now=now):
            continue
        try:
            channel.send(_message(notice))
        except Exception:
            # The loop's edge: one message that cannot go out must not hold up the others.
            logger.exception("notice=%s could not be sent by channel=%s", notice.pk, channel.name)
            continue
        delivered += Notice.objects.filter(pk=notice.pk).update(delivered_at=now)
    return delivered


def _claim(notice: Notice, *, now: datetime) -> bool:
    """Whether the notice is ours to send: of several workers one wins."""
    same = Notice.objects.filter(pk=notice.pk, delivered_at=None, claimed_at=notice.claimed_at)
    return same.update(claimed_at=now) == 1


def _message(notice: Notice) -> Message:
    return Message(
        id=notice.pk,
        person=notice.user_id,
        email=notice.user.email,
        kind=notice.kind,
        text=notice.text,
        booking=notice.booking_id,
        created=notice.created,
    )
