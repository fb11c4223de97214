"""Who people are on a host: their Unix names, or nothing where they have no account."""

import re
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db.models import Q

from reservations.core.plan import UnixAccount
from reservations.models import Account, Host, User

# What useradd accepts, and a dot. Anything else is no Unix name, whatever a person is called here.
_UNIX_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")


def unix_accounts(
    host: Host, people: Iterable[int] | None = None, *, now: datetime
) -> dict[int, UnixAccount]:
    """Account by user id, for those of ``people`` (None: everybody) who have one on ``host``.

    An account of the host goes before one that is valid everywhere, and its name is that person's
    alone: nobody else gets it on this host through an account everywhere or a username.
    """
    rows = Account.objects.filter(Q(host=host) | Q(host=None)).select_related("user")
    chosen: dict[int, UnixAccount] = {}
    names: set[str] = set()
    for row in sorted(rows, key=lambda row: row.host_id is None):
        if row.user_id not in chosen and row.unix_name not in names:
            chosen[row.user_id] = _account(row.user, row.unix_name, row.expected_uid, now=now)
            names.add(row.unix_name)
    wanted = None if people is None else set(people)
    if settings.UNIX_NAMES == "username":
        users = User.objects.all() if wanted is None else User.objects.filter(pk__in=wanted)
        for user in users.exclude(pk__in=chosen):
            if user.username not in names and _UNIX_NAME.fullmatch(user.username):
                chosen[user.pk] = _account(user, user.username, None, now=now)
    return {pk: account for pk, account in chosen.items() if wanted is None or pk in wanted}


def _account(user: User, unix_name: str, uid: int | None, *, now: datetime) -> UnixAccount:
    return UnixAccount(unix_name, uid, active=user.has_access(now))
