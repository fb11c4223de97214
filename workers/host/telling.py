"""Tells everybody on the host what concerns them: on people's terminals, and in the public file.

What was told of an end is written down before it is said, so a crash in between leaves a step unsaid
rather than said twice. In mode ``observe`` nobody is told on a terminal.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from reservations.core.endings import endings
from reservations.core.enforcement import Ladder
from reservations.core.wire import MAX_TEXT, DeviceInfo, HealthProblem, Report, Sample, Shape
from workers.host import messages, public
from workers.host.config import Config
from workers.host.files import Damaged, read_checked, set_aside, write_checked
from workers.host.plans import InForce
from workers.host.terminals import FOLDERS, Terminals

logger = logging.getLogger(__name__)

# An end that lies this far back is told of no more, whatever the clock does.
REMEMBERED = timedelta(hours=1)


class Told(Shape, frozen=True, kw_only=True):
    """The keys of the endings that were told, each with its end."""

    endings: dict[str, datetime] = {}


class Teller:
    """For one thread, the agent's. Nothing here waits for anybody, or is waited for."""

    def __init__(self, config: Config, *, people_are_real: bool) -> None:
        self._config = config
        # The uids of a simulated host are somebody else's on the machine that it runs on.
        self._terminals = Terminals(FOLDERS if people_are_real else ())
        self._file = public.PublicFile(config.run_dir) if config.run_dir else None
        self._path = config.state_dir / "told.json"
        self._told = self._load()
        self._heard: list[Report] = []
        self._waiting: set[tuple[int | None, str | None, int | None]] = set()
        self._speaks = False

    def start(self) -> None:
        self._speaks = True
        self._terminals.start()

    def stop(self) -> None:
        self._terminals.stop()

    def problems(self) -> list[HealthProblem]:
        if self._file is None or not self._file.problem:
            return []
        return [HealthProblem(code="public_file", text=self._file.problem[:MAX_TEXT])]

    def hear(self, reports: Sequence[Report]) -> None:
        """What was done; `tell` says it to the people whom it is about."""
        for report in reports:
            place = report.booking, report.device, report.uid
            if report.kind == "delayed":
                self._waiting.add(place)
            # Only who has waited wants to hear of an opening.
            if report.kind != "opened" or place in self._waiting:
                self._heard.append(report)
            if report.kind in {"opened", "closed"}:
                self._waiting.discard(place)

    def tell(
        self,
        samples: Mapping[str, Sample],
        in_force: InForce,
        devices: Sequence[DeviceInfo],
        *,
        ladder: Ladder,
        now: datetime,
    ) -> None:
        """All that there is to tell after a look."""
        # An agent that takes a single look speaks to nobody.
        if self._speaks and in_force.settings.mode != "observe":
            words = self._words(in_force, devices)
            said = self._of_endings(in_force, words, now=now)
            self._say([*messages.of_reports(self._heard, words), *said])
        self._heard = []
        if self._file is not None:
            seen = public.of_devices(devices, samples, in_force, ladder=ladder, now=now)
            self._file.write(
                public.PublicHost(
                    at=now,
                    host=self._config.host,
                    url=self._config.url,
                    mode=in_force.settings.mode,
                    devices=seen,
                )
            )

    def _of_endings(
        self, in_force: InForce, words: messages.Words, *, now: datetime
    ) -> list[messages.Message]:
        told = self._told.endings
        due = [one for one in endings(in_force.grants, now=now) if one.key not in told]
        if due:
            recent = {key: end for key, end in told.items() if end > now - REMEMBERED}
            self._told = Told(endings=recent | {ending.key: ending.end for ending in due})
            self._save()
        return [messages.of_ending(ending, words, now=now) for ending in due]

    def _say(self, said: Sequence[messages.Message]) -> None:
        for message in said:
            self._terminals.say(message.uid, message.lines)

    def _words(self, in_force: InForce, devices: Sequence[DeviceInfo]) -> messages.Words:
        return messages.Words(
            host=self._config.host,
            url=self._config.url,
            devices={device.uuid: device for device in devices},
            settings=in_force.settings,
        )

    def _load(self) -> Told:
        try:
            return read_checked(self._path, Told) or Told()
        except Damaged as error:
            logger.error("%s; set aside, some steps may be told twice", error)  # noqa: TRY400
            set_aside(self._path)
            return Told()

    def _save(self) -> None:
        try:
            write_checked(self._path, self._told)
        except OSError:
            # Said all the same: twice after a restart is better than never.
            logger.exception("what was told cannot be written down")
