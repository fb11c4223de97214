"""Who does something: a person through some door, or Berth itself."""

from dataclasses import dataclass, replace

from reservations.core.errors import Forbidden
from reservations.models import User
from reservations.selectors.visible import EVERYTHING, Viewer


@dataclass(frozen=True)
class Actor:
    """``source`` is the door (web, api, hub, command, system); ``address`` where the request came from.

    ``on_behalf_of``: who wished for what Berth does. Their rights hold, and rules bind as for them.
    """

    user: User | None
    label: str
    source: str
    address: str | None = None
    on_behalf_of: User | None = None

    @classmethod
    def of(cls, user: User, *, source: str, address: str | None = None) -> "Actor":
        return cls(user, user.username[:100], source, address)

    @property
    def person(self) -> User | None:
        """Whose rights it is done with; None where nobody's are needed."""
        return self.user or self.on_behalf_of

    def viewer(self) -> Viewer:
        """What the actor may see; asks for a person's teams."""
        return Viewer.of(self.person) if self.person else EVERYTHING

    @property
    def may_operate(self) -> bool:
        return self.person is None or self.person.is_operator

    def check_operates(self) -> None:
        """Raises ``Forbidden`` unless the actor is an operator or Berth itself."""
        if not self.may_operate:
            raise Forbidden("Only operators may do this.")


BERTH = Actor(None, "berth", "system")


def berth_for(person: User) -> Actor:
    """Berth, which does what this person has asked for beforehand and may do."""
    return replace(BERTH, on_behalf_of=person)


# Whoever may run `manage.py` on the server.
COMMAND_LINE = Actor(None, "manage.py", "command")
