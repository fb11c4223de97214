"""All row locks that a booking needs, in one order: site, team, owner, devices by key.

Each verb takes them once per transaction, before it looks. The fixed order rules out deadlocks between
bookings; ``no_key`` leaves the inserts of others that only refer to a row (samples, audit) unblocked.
SQLite has no row locks and needs none: ``BEGIN IMMEDIATE`` lets one writer in at a time.
"""

from collections.abc import Iterable, Sequence

from django.db.models import BigIntegerField, QuerySet

from reservations.core.errors import NotFound
from reservations.models import Device, Host, Site, Team, User
from reservations.prepared import Bind, OneOf, Prepared, columns, instance
from reservations.selectors.standing import ActiveRule


def people(*, owner: int, team: int | None, rules: Sequence[ActiveRule]) -> User:
    """Lock whom quotas count, and give the owner as of now.

    Every change of a booking holds its owner's lock, so this guards the booking itself too. The site's
    row is taken only where a rule counts everybody, the team's only where there is one.
    """
    if any(one.counts_everybody for one in rules):
        list(Site.objects.select_for_update(no_key=True).order_by("pk"))
    if team is not None:
        list(Team.objects.select_for_update(no_key=True).filter(pk=team))
    return _owner(owner)


def devices(wanted: QuerySet[Device]) -> list[Device]:
    """The devices as of now, with their hosts, locked in the order of their keys."""
    locked = wanted.select_for_update(no_key=True, of=("self",)).select_related("host")
    return list(locked.order_by("pk"))


def devices_named(uuids: Iterable[str]) -> list[Device]:
    """The same for named devices: the usual case, and the quickest."""
    found = []
    for row in _NAMED.rows(uuids=list(uuids)):
        device = instance(Device, row[:_WIDTH])
        device.host = instance(Host, row[_WIDTH:])
        found.append(device)
    return found


def devices_by_key(keys: Iterable[int]) -> list[Device]:
    return devices(Device.objects.filter(pk__in=set(keys)))


def _owner(pk: int) -> User:
    found = _PERSON.rows(pk=pk)
    if not found:
        raise NotFound("There is no such person.")
    return instance(User, found[0])


_PERSON = Prepared(
    lambda: User.objects.select_for_update(no_key=True).filter(pk=Bind("pk", BigIntegerField()))
)
_WIDTH = len(columns(Device))
_NAMED = Prepared(
    lambda: (
        Device.objects.filter(OneOf("uuid", "uuids"))
        .select_for_update(no_key=True, of=("self",))
        .select_related("host")
        .order_by("pk")
    )
)
