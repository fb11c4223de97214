"""Unix names and uids. Looking them up may hang for minutes (LDAP), so it happens in threads of its own."""

import logging
import pwd
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from workers.host.simulation import SimulatedHost, SimulationError

logger = logging.getLogger(__name__)

# Look-ups under way at once; a directory that hangs keeps no more threads than this.
MAX_LOOKUPS = 16
# What the wire takes; a longer name is left out rather than the whole heartbeat.
MAX_NAME = 64


class Users(Protocol):
    """Who is who on a host. Both calls may block; OSError means "could not be asked now"."""

    def uid_of(self, unix_name: str) -> int | None: ...
    def name_of(self, uid: int) -> str | None: ...


class SystemUsers:
    """The machine's own user database."""

    def uid_of(self, unix_name: str) -> int | None:
        try:
            return pwd.getpwnam(unix_name).pw_uid
        except KeyError:
            return None

    def name_of(self, uid: int) -> str | None:
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return None


class SimulatedUsers:
    """The people of a simulated host."""

    def __init__(self, host: SimulatedHost) -> None:
        self._host = host

    def uid_of(self, unix_name: str) -> int | None:
        return self._users().get(unix_name)

    def name_of(self, uid: int) -> str | None:
        return next((name for name, known in self._users().items() if known == uid), None)

    def _users(self) -> Mapping[str, int]:
        try:
            return self._host.users()
        except SimulationError as error:
            raise OSError(str(error)) from error


class _Lookup:
    """One question, answered once, at which ``tell`` is called. ``failed`` until an answer came."""

    def __init__(self, users: Users, key: str | int, tell: Callable[[], None]) -> None:
        self.done = False
        self.failed = True
        self.answer: int | str | None = None
        self._users = users
        self._key = key
        self._tell = tell
        threading.Thread(target=self._run, name=f"look up {key}", daemon=True).start()

    def _run(self) -> None:
        try:
            if isinstance(self._key, str):
                self.answer = self._users.uid_of(self._key)
            else:
                self.answer = self._users.name_of(self._key)
            self.failed = False
        except Exception:
            logger.exception("look-up failed key=%s", self._key)
        finally:
            self.done = True
            self._tell()


class Names:
    """Answers within a time limit, from look-ups that may take longer. Safe from any thread."""

    def __init__(self, users: Users) -> None:
        self._users = users
        self._answered = threading.Condition()
        self._under_way: dict[str | int, _Lookup] = {}
        self._known_names: dict[int, str | None] = {}

    def uids_of(self, unix_names: Iterable[str], *, wait_s: float) -> dict[str, int | None]:
        """What is known of these names now: a uid, or None for "nobody here has that name".

        A name whose look-up failed or still runs is left out; ask again later.
        """
        answers = self._ask(unix_names, wait_s)
        return {
            name: answer
            for name, answer in answers.items()
            if isinstance(name, str) and (answer is None or isinstance(answer, int))
        }

    def name_of(self, uid: int, *, wait_s: float = 0.0) -> str | None:
        """The name if it is known within ``wait_s``; otherwise None, and it may be next time."""
        if uid not in self._known_names:
            for answer in self._ask({uid}, wait_s).values():
                fits = isinstance(answer, str) and len(answer) <= MAX_NAME
                self._known_names[uid] = str(answer) if fits else None
        return self._known_names.get(uid)

    def _ask(self, keys: Iterable[str | int], wait_s: float) -> dict[str | int, int | str | None]:
        waiting = list(dict.fromkeys(keys))
        answers: dict[str | int, int | str | None] = {}
        with self._answered:
            self._answered.wait_for(lambda: self._all_answered(waiting, answers), wait_s)
        return answers

    def _all_answered(
        self, waiting: list[str | int], answers: dict[str | int, int | str | None]
    ) -> bool:
        """Takes the answers that are there, and begins the look-ups for which that makes room."""
        for key in list(waiting):
            if key in self._under_way and self._under_way[key].done:
                lookup = self._under_way.pop(key)
                waiting.remove(key)
                if not lookup.failed:
                    answers[key] = lookup.answer
        for key in waiting:
            if key not in self._under_way and self._has_room(beside=waiting):
                self._under_way[key] = _Lookup(self._users, key, self._tell)
        return not waiting

    def _has_room(self, *, beside: Collection[str | int]) -> bool:
        """Answers that nobody came back for make room, should it be needed."""
        full = len(self._under_way) >= MAX_LOOKUPS
        for key in [key for key, one in self._under_way.items() if full and one.done]:
            if key not in beside:
                del self._under_way[key]
        return len(self._under_way) < MAX_LOOKUPS

    def _tell(self) -> None:
        with self._answered:
            self._answered.notify_all()
