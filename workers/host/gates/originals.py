"""What the nodes were like before Berth first gated them, kept on disk, so that they can be given back.

A node that is made anew, as by a driver reload or a reboot, has originals of its own.
"""

import logging
from pathlib import Path

import msgspec

from reservations.core.wire import Shape
from workers.host.files import replace_file, set_aside
from workers.host.gates.access import Access, identity

logger = logging.getLogger(__name__)


class _Original(Shape, frozen=True, kw_only=True):
    boot_id: str
    identity: str
    access: Access


class Originals:
    """One file for all nodes, by path."""

    def __init__(self, path: Path, *, boot_id: str) -> None:
        self._path = path
        self._boot_id = boot_id
        self._known = self._load()

    def remember(self, node: str, access: Access) -> None:
        """Keep how this node is now, unless that is known already.

        Raises:
            OSError: There is no such node.
        """
        if self.of(node) is None:
            original = _Original(boot_id=self._boot_id, identity=identity(node), access=access)
            self._save({**self._known, node: original})

    def of(self, node: str) -> Access | None:
        """How this very node was, if it was ever gated.

        Raises:
            OSError: There is no such node.
        """
        known = self._known.get(node)
        return known.access if known and known.identity == identity(node) else None

    def forget(self, node: str) -> None:
        """It has been given back."""
        if node in self._known:
            self._save({path: one for path, one in self._known.items() if path != node})

    def _save(self, known: dict[str, _Original]) -> None:
        """On disk too, if that can be: a gate that stays open would be worse than an original forgotten."""
        self._known = known
        try:
            replace_file(self._path, msgspec.json.encode(known))
        except OSError:
            logger.exception("file=%s cannot be written", self._path)

    def _load(self) -> dict[str, _Original]:
        try:
            known = msgspec.json.decode(self._path.read_bytes(), type=dict[str, _Original])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            logger.error("file=%s cannot be used (%s); set aside", self._path, error)  # noqa: TRY400
            set_aside(self._path)
            return {}
        return {path: one for path, one in known.items() if one.boot_id == self._boot_id}
