"""Where root's commands are written down, and how it is seen that the agent obeys them.

Nothing here needs a server, a broker or a running agent.
"""

import contextlib
import os
import pwd
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from reservations.core.wire import LAST_UID, MAX_TEXT, DeviceInfo, Report, ReportKind
from workers.host import config, fleet, status
from workers.host.agent import Agent
from workers.host.assembly import open_users, open_vendor
from workers.host.by_hand import DAMAGED, ByHand, HandFile
from workers.host.clock import HostClock
from workers.host.commands.words import WrongCall, is_number
from workers.host.files import Damaged
from workers.host.names import Names
from workers.host.plain_text import plain
from workers.host.plan_store import PlanStore
from workers.host.vendors.base import VendorError
from workers.host.wake import wake

# A directory that has not answered by then is rather down.
NAMES_WAIT_S = 10.0
# The agent is woken at once; a tick takes fractions of a second.
OBEY_LIMIT_S = 10.0


class Desk:
    """The state folder of one host, and who sits at its terminal."""

    def __init__(self, environ: Mapping[str, str], folder: str | None) -> None:
        """For root, and on simulated hosts for the folder's owner.

        The local limits are read by whoever sets a gate: a hold must not fail for want of them.

        Raises:
            WrongCall: somebody else calls, or ``folder`` is none.
        """
        self._environ = config.environment(environ)
        if folder:
            self._environ["BERTH_STATE_DIR"] = folder
        self._config = config.read_local(self._environ)
        self.folder = self._config.state_dir
        _check_root(self.folder)
        if not self.folder.is_dir() and (folder or self.folder.exists()):
            raise WrongCall(f"{self.folder} is no folder of an agent")
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._clock = HostClock()
        if plan := PlanStore(self.folder).peek_plan():
            self._clock.restore(plan.anchor)
        self._file = HandFile(self.folder)
        self.who = _who(environ)

    @property
    def running(self) -> bool:
        return status.is_running(self.folder)

    def now(self) -> datetime:
        """The server's time where it is known, as for the agent."""
        return self._clock.now()

    def devices(self) -> tuple[DeviceInfo, ...]:
        """As the agent has seen them in this boot, else as the driver names them."""
        known = fleet.remembered(self.folder / "inventory.json", self._clock.boot_id)
        if known:
            return known
        try:
            return open_vendor(self._config, self._clock).devices()
        except VendorError as error:
            raise WrongCall(f"the devices cannot be listed: {error}") from error

    def person(self, user: str) -> tuple[str, int]:
        """Name and uid of a user, given by either."""
        names = Names(open_users(self._config))
        if is_number(user):
            uid: int | None = int(user)
            if int(user) > LAST_UID:
                raise WrongCall(f"{user} is no uid")
            name = names.name_of(int(user), wait_s=1.0) or f"uid-{user}"
        else:
            answers = names.uids_of([user], wait_s=NAMES_WAIT_S)
            if user not in answers:
                raise WrongCall(f"{user} cannot be looked up now; give the uid instead")
            uid, name = answers[user], user
        if uid is None:
            raise WrongCall(f"{user} is unknown on this host")
        if uid == 0:
            raise WrongCall("root may use every device as it is")
        return name, uid

    def read(self) -> ByHand:
        try:
            return self._file.read()
        except Damaged:
            raise WrongCall(DAMAGED) from None

    def say(self, change: Callable[[ByHand], ByHand], report: Report) -> ByHand:
        """Writes it down, with its report, and has a running agent look."""
        with self._file.changing():
            said = self._file.write(change(self.read()), report)
        wake(self.folder)
        return said

    def begin_anew(self) -> bool:
        """Sets what was said aside if it is damaged; whether it was."""
        with self._file.changing():
            try:
                self._file.read()
            except Damaged:
                self._file.begin_anew()
                return True
        return False

    def report(self, kind: ReportKind, text: str = "", **about: object) -> Report:
        """An act of root, with who that was."""
        told = f"{text}; {self.who}" if text else self.who
        return Report(id=uuid4().hex, at=self.now(), kind=kind, text=told[:MAX_TEXT], **about)  # type: ignore[arg-type]

    def act_alone(self) -> None:
        """One look of an agent that stops nobody, where none runs."""
        with contextlib.suppress(status.AlreadyRunning):
            Agent(config.with_limits(self._config, self._environ)).once()

    def obeyed(self, said: ByHand) -> status.Status | None:
        """What the agent sees once it has obeyed, or None if it has not within `OBEY_LIMIT_S`."""
        until = time.monotonic() + OBEY_LIMIT_S
        while True:
            seen = status.read(self.folder)
            if seen and seen.by_hand_revision >= said.revision:
                return seen
            if time.monotonic() > until:
                return None
            time.sleep(0.02)  # noqa: TID251 -- a command, whose only work is to wait


def _check_root(folder: Path) -> None:
    euid = os.geteuid()
    if euid == 0:
        return
    try:
        owner = folder.stat().st_uid
    except OSError:
        owner = None
    if owner != euid:
        raise WrongCall("only root may do this; try it with sudo")


def _who(environ: Mapping[str, str]) -> str:
    if by := environ.get("SUDO_USER"):
        return f"by {plain(by, limit=64)} as root"
    try:
        login = int(Path("/proc/self/loginuid").read_text())
        return f"by {pwd.getpwuid(login).pw_name} as root"
    except (OSError, ValueError, KeyError):
        return "by root"
