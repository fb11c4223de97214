"""Who a booking is for, and whether the actor may ask for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from reservations.core.errors import Forbidden, Invalid
from reservations.models import Membership, Team, User
from reservations.services.actors import Actor
from reservations.services.wishes import Wish


@dataclass(frozen=True)
class Parties:
    owner: User
    people: Sequence[User]
    team: Team | None


def parties_of(wish: Wish, actor: Actor) -> Parties:
    """The people and the team that the wish names.

    Raises:
        Forbidden: only operators book for somebody else, or anything but an ordinary booking.
        Invalid: a name that is not known, or a team that the owner is not in.
    """
    owner = _owner(wish, actor)
    if wish.kind != "normal" and not actor.may_operate:
        raise Forbidden("Only operators make service and maintenance bookings.")
    return Parties(owner, _people(wish, owner), _team(wish, owner))


def _owner(wish: Wish, actor: Actor) -> User:
    if actor.person is not None and wish.owner in {None, actor.person.username}:
        return actor.person
    if not actor.may_operate:
        raise Forbidden("Only operators book for somebody else.")
    owner = User.objects.filter(username=wish.owner or "").first()
    if owner is None:
        raise Invalid({"owner": [f"There is no person {wish.owner}."]})
    return owner


def _people(wish: Wish, owner: User) -> list[User]:
    names = set(wish.people) - {owner.username}
    if not names:
        return []
    found = list(User.objects.filter(username__in=names).order_by("username"))
    if missing := sorted(names - {one.username for one in found}):
        raise Invalid({"people": [f"There is no person {name}." for name in missing[:20]]})
    return found


def _team(wish: Wish, owner: User) -> Team | None:
    if not wish.team:
        return None
    memberships = Membership.objects.filter(user=owner, team__name=wish.team)
    membership = memberships.select_related("team").first()
    if membership is None:
        raise Invalid({"team": [f"{owner.name} is not in a team {wish.team}."]})
    return membership.team
