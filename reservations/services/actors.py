"""Who does something: a person through some door, or Berth itself."""

from dataclasses import dataclass

from reservations.models import User
from reservations.selectors.visible import EVERYTHING, Viewer


@dataclass(frozen=True)
class Actor:
    """``source`` is the door (web, api, hub, command, system); ``address`` where the request came from."""

    user: User | None
    label: str
    source: str
    address: str | None = None

    @classmethod
    def of(cls, user: User, *, source: str, address: str | None = None) -> "Actor":
        return cls(user, user.username[:100], source, address)

    def viewer(self) -> Viewer:
        """What the actor may see; asks for a person's teams."""
        return Viewer.of(self.user) if self.user else EVERYTHING

    @property
    def may_operate(self) -> bool:
        return self.user is None or self.user.is_operator


BERTH = Actor(None, "berth", "system")
# Whoever may run `manage.py` on the server.
COMMAND_LINE = Actor(None, "manage.py", "command")
