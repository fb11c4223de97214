"""Who may operate the site, and what happens to somebody's bookings when they leave."""

from datetime import datetime

from django.db import transaction

from reservations.core.errors import Forbidden
from reservations.models import Booking, User
from reservations.selectors import bookings
from reservations.services import audit, ending, locks, writes
from reservations.services.actors import Actor


def deactivate_user(user_id: int, *, actor: Actor, now: datetime, why: str = "") -> User:
    """Close somebody's access: upcoming bookings are cancelled, running ones end now, history stays.

    Raises:
        Forbidden, NotFound, Busy
    """
    if not actor.may_operate:
        raise Forbidden("Only operators close somebody's access.")

    def work() -> User:
        user = locks.people(owner=user_id, team=None, rules=())
        user.is_active = False
        user.save(update_fields=["is_active"])
        audit.record("deactivated", actor=actor, now=now, why=why, after={"user": user.username})
        open_states = (Booking.State.PENDING, Booking.State.CONFIRMED)
        theirs = bookings.whole().filter(owner=user, state__in=open_states, end__gt=now)
        for booking in theirs.order_by("start", "pk"):
            ending.finish(booking, actor=actor, now=now, why=f"{user.name} left.")
        return user

    return writes.run(work, now=now)


def set_operator(user: User, *, is_operator: bool, actor: Actor, now: datetime) -> None:
    """Give or take an operator's rights.

    Raises:
        Forbidden
    """
    if not actor.may_operate:
        raise Forbidden("Only operators say who is one.")
    with transaction.atomic():
        current = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        user.is_operator = is_operator
        if current.is_operator == is_operator:
            return
        current.is_operator = is_operator
        current.save(update_fields=["is_operator"])
        after = {"user": current.username, "is_operator": is_operator}
        audit.record("operator_changed", actor=actor, now=now, after=after)
