"""Who may use a device at one instant: nobody, one booking's people, or everybody (walk-up)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from reservations.core.enforcement import HostGrant
from reservations.core.wire import HostSettings

# Start times of processes come in ticks of 10 ms, on a clock that is now and then set to the server's by
# some hundredths of a second. What began later than this after an end has not begun before it.
TICK_TOLERANCE = timedelta(seconds=0.1)


@dataclass(frozen=True, slots=True)
class Rights:
    """The grants of one device, as they stand now.

    ``honoured``: those in force, of one booking, or what root gave by hand. ``disputed``: also in
    force, but second to that; they open nothing and nobody is stopped over them. ``ended``: each
    person's last grant that is over. ``given_back``: what root gave by hand, and is over.
    ``upcoming``: those that begin next. ``walk_up``: the device is open to the access group.
    """

    device: str
    honoured: tuple[HostGrant, ...] = ()
    disputed: tuple[HostGrant, ...] = ()
    ended: dict[int, HostGrant] = field(default_factory=dict)
    given_back: tuple[HostGrant, ...] = ()
    upcoming: tuple[HostGrant, ...] = ()
    walk_up: bool = False

    @property
    def uids(self) -> frozenset[int]:
        return frozenset(grant.uid for grant in self.honoured)

    @property
    def by_hand(self) -> HostGrant | None:
        """What root on the host gave, which goes before every booking."""
        return next((grant for grant in self.honoured if grant.booking is None), None)

    @property
    def began_at(self) -> datetime | None:
        """When the honoured booking began here."""
        return min((grant.start for grant in self.honoured), default=None)

    def cover(self, people: frozenset[int]) -> bool:
        """Whether one of them has a grant that is in force."""
        return not people.isdisjoint(self.uids | {grant.uid for grant in self.disputed})


def rights(
    grants: Iterable[HostGrant], device: str, *, settings: HostSettings, now: datetime
) -> Rights:
    """The rights on ``device`` at ``now``."""
    here = [grant for grant in grants if grant.device == device]
    running = [grant for grant in here if grant.runs(now)]
    honoured, disputed = _told_apart(running)
    ended: dict[int, HostGrant] = {}
    for grant in sorted(here, key=lambda grant: grant.end):
        if grant.end <= now:
            ended[grant.uid] = grant
    return Rights(
        device=device,
        honoured=honoured,
        disputed=disputed,
        ended=ended,
        given_back=tuple(given_back(here, now=now)),
        upcoming=_next_to_begin([grant for grant in here if grant.start > now]),
        walk_up=settings.unbooked_use == "allow" and not running,
    )


def given_back(grants: Iterable[HostGrant], *, now: datetime) -> Iterable[HostGrant]:
    """What root gave by hand, and is over."""
    return (grant for grant in grants if grant.booking is None and grant.end <= now)


def turn_of(
    grant: HostGrant, by_hand: Iterable[HostGrant], *, enforcing_since: datetime | None
) -> datetime:
    """When the device is to open for it: its start, or what came later and makes it open once more.

    That is the end of what root gave to somebody else meanwhile, or the host's switch to enforce.
    """
    interruptions = (
        one.end
        for one in by_hand
        if one.device == grant.device and one.uid != grant.uid and one.end > grant.start
    )
    return max((*interruptions, enforcing_since or grant.start, grant.start))


def _told_apart(
    running: Sequence[HostGrant],
) -> tuple[tuple[HostGrant, ...], tuple[HostGrant, ...]]:
    """The grants of the booking that began first, and the others; what was given by hand comes first.

    People of one booking share its devices. Grants of different bookings in one person's hands are
    no dispute, whoever comes first.
    """
    if not running:
        return (), ()
    by_hand = [grant for grant in running if grant.booking is None]
    first = min(by_hand or running, key=lambda grant: (grant.start, grant.booking or 0)).booking
    people = {grant.uid for grant in running if grant.booking == first}
    honoured = tuple(g for g in running if g.booking == first or people == {g.uid})
    return honoured, tuple(grant for grant in running if grant not in honoured)


def _next_to_begin(later: Sequence[HostGrant]) -> tuple[HostGrant, ...]:
    start = min((grant.start for grant in later), default=None)
    return tuple(grant for grant in later if grant.start == start)
