"""What cannot be written down: a full or broken disk stops no look, and is told of instead.

Whatever could not be kept still counts in memory; only a restart would forget it.
"""

import contextlib
import logging
from collections.abc import Iterator

from reservations.core.wire import MAX_TEXT, HealthProblem

logger = logging.getLogger(__name__)


class Disk:
    """Remembers for each thing to be kept whether that failed the last time."""

    def __init__(self) -> None:
        self._failed: dict[str, str] = {}

    @contextlib.contextmanager
    def keeping(self, what: str) -> Iterator[None]:
        """Around the writing of ``what``; logged when the trouble begins, and when it ends."""
        try:
            yield
        except OSError as error:
            if what not in self._failed:
                logger.exception("%s cannot be written down", what)
            self._failed[what] = error.strerror or str(error)
        else:
            if self._failed.pop(what, None):
                logger.warning("%s can be written down again", what)

    def problems(self) -> list[HealthProblem]:
        failed = sorted(self._failed.items())
        texts = (f"{what} cannot be written down: {why}" for what, why in failed)
        return [HealthProblem(code="disk", text=text[:MAX_TEXT]) for text in texts]
