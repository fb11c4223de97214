"""Stops what starts processes again, through its own manager, in threads: the agent's tick waits for none.

A stop that fails changes nothing for anybody else: the ladder goes on to SIGKILL after the grace.
"""

import logging
import math
import re
import threading
from collections.abc import Collection

from reservations.core.enforcement import Keeper
from reservations.core.wire import MAX_TEXT, HealthProblem
from workers.host.keepers import systemctl
from workers.host.programs import ProgramMissingError, ProgramSilentError, ask_program

logger = logging.getLogger(__name__)

# What a manager may take beyond the grace to answer that it is done.
MARGIN_S = 10.0
# Neither an option nor a pattern: systemctl would stop every unit that fits one.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9:_.@\\-]*")


class UnitStops:
    """One stop of a unit at a time. Its methods are for one thread, the agent's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: set[Keeper] = set()
        self._failed: dict[Keeper, HealthProblem] = {}

    def stop(self, keeper: Keeper, *, device: str, grace_s: float) -> None:
        """Has the unit stopped, unless that is under way. Returns at once."""
        with self._lock:
            if keeper in self._under_way:
                return
            self._under_way.add(keeper)
            self._failed.pop(keeper, None)
        threading.Thread(
            target=self._run, args=(keeper, device, grace_s), name="unit-stop", daemon=True
        ).start()

    def problems(self) -> list[HealthProblem]:
        """What could not be stopped."""
        with self._lock:
            return list(self._failed.values())

    def keep_only(self, devices: Collection[str]) -> None:
        """Forget what failed on devices that nobody is led off any more."""
        with self._lock:
            kept = {keeper: one for keeper, one in self._failed.items() if one.device in devices}
            self._failed = kept

    def _run(self, keeper: Keeper, device: str, grace_s: float) -> None:
        why = "the stop broke off"
        try:
            why = _stop(keeper, grace_s)
        finally:
            with self._lock:
                self._under_way.discard(keeper)
                if why:
                    logger.error(
                        "unit not stopped engine=%s name=%s: %s", keeper.engine, keeper.name, why
                    )
                    text = f"{keeper.engine} did not stop {keeper.name}: {why}"[:MAX_TEXT]
                    self._failed[keeper] = HealthProblem(
                        code="unit_not_stopped", text=text, device=device
                    )


def _stop(keeper: Keeper, grace_s: float) -> str:
    """Why it failed; empty where it did not."""
    if not _NAME.fullmatch(keeper.name):
        return "that is no name of a unit"
    try:
        code, _, said = ask_program(_command(keeper, grace_s), limit_s=grace_s + MARGIN_S)
    except (ProgramMissingError, ProgramSilentError) as error:
        return str(error)
    if code == 0:
        return ""
    return said.decode(errors="replace").strip()[:300] or f"exit status {code}"


def _command(keeper: Keeper, grace_s: float) -> tuple[str, ...]:
    if keeper.engine == "systemd":
        # How long that may take, the unit says itself.
        return systemctl(keeper.owner, "stop", "--", keeper.name)
    return (keeper.engine, "stop", "--time", str(math.ceil(grace_s)), "--", keeper.name)
