"""The gate of a bare host: a POSIX ACL on each device node.

The ACL is replaced whole, never added to. Owner, group and mode are what the driver's helper would
put them to, so it leaves the node in peace. Closing never touches descriptors that are open.
"""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from reservations.core.enforcement import GateState
from reservations.core.leases import Leases
from workers.host.gates import access, helper
from workers.host.gates.access import Access
from workers.host.gates.base import GateError
from workers.host.gates.helper import GATED_MODE, HelperSettings
from workers.host.gates.originals import Originals
from workers.host.gates.posix_acl import admits_more, decode, encode, entries_for, users


class AclGate:
    """Gates the nodes of each device, given by path."""

    def __init__(
        self,
        nodes: Mapping[str, Sequence[str]],
        originals: Originals,
        *,
        helper_settings: Callable[[], HelperSettings | None] = helper.read,
        problem: str = "",
    ) -> None:
        self.problem = problem
        self._nodes = nodes
        self._originals = originals
        self._helper_settings = helper_settings
        # As last observed or set, by path; None where it could not be read.
        self._known: dict[str, Access | None] = {}
        self._lock = threading.Lock()

    @property
    def nodes(self) -> Sequence[str]:
        return [path for paths in self._nodes.values() for path in paths]

    @property
    def devices(self) -> Collection[str]:
        return self._nodes.keys()

    def observe(self) -> Mapping[str, GateState | None]:
        settings = self._helper_settings()
        return {device: self._observe(paths, settings) for device, paths in self._nodes.items()}

    def disturbed(self) -> bool:
        with self._lock:
            return any(_read_or_none(path) != known for path, known in self._known.items())

    def lend(self, leases: Leases, now: datetime) -> None:
        """A list has no clock."""

    def set(self, device: str, uids: Iterable[int], *, group_open: bool) -> None:
        acl = encode(entries_for(uids, group_open=group_open))
        settings = self._helper_settings()
        for path in self.paths(device):
            try:
                self._set(path, acl, settings)
            except OSError as error:
                raise GateError(f"{path} cannot be gated: {error.strerror}") from error

    def restore(self, device: str) -> None:
        settings = self._helper_settings()
        for path in self.paths(device):
            try:
                self._restore(path, settings)
            except OSError as error:
                raise GateError(f"{path} cannot be restored: {error.strerror}") from error

    def paths(self, device: str) -> Sequence[str]:
        """The nodes of a device.

        Raises:
            GateError: The device is not known.
        """
        try:
            return self._nodes[device]
        except KeyError:
            raise GateError(f"no node of {device} is known") from None

    def _set(self, path: str, acl: bytes, settings: HelperSettings | None) -> None:
        with self._lock:
            found = access.read(path)
            if settings and settings.objection and helper.governs(path):
                raise GateError(f"{path} is not gated: {settings.objection}")
            self._originals.remember(path, _before_gating(found))
            wanted = self._gated(path, found, acl, settings)
            access.write(path, wanted)
            self._known[path] = wanted

    def _restore(self, path: str, settings: HelperSettings | None) -> None:
        with self._lock:
            try:
                found = access.read(path)
                original = self._originals.of(path) or _before_gating(found)
            except FileNotFoundError:
                self._originals.forget(path)
                return
            access.write(path, original)
            self._known[path] = original
            self._originals.forget(path)

    def _gated(
        self, path: str, found: Access, acl: bytes | None, settings: HelperSettings | None
    ) -> Access:
        """How this node has to be: the agent's own, since an owner may open it and change its list."""
        original = self._originals.of(path)
        gid = original.gid if original else found.gid
        if settings and settings.gid is not None and helper.governs(path):
            gid = settings.gid
        return Access(uid=os.geteuid(), gid=gid, mode=GATED_MODE, acl=acl)

    def _observe(self, paths: Sequence[str], settings: HelperSettings | None) -> GateState | None:
        """What all nodes of a device say together: open where any of them is."""
        states = [self._state_of(path, settings) for path in paths]
        known = [state for state in states if state is not None]
        if not known or len(known) < len(states):
            return None
        return GateState(
            uids=frozenset().union(*(state.uids for state in known)),
            group_open=any(state.group_open for state in known),
            sound=all(state.sound for state in known) and len(set(known)) == 1,
        )

    def _state_of(self, path: str, settings: HelperSettings | None) -> GateState | None:
        """Who may open one node, and whether it is as this gate would write it."""
        with self._lock:
            found = self._known[path] = _read_or_none(path)
            try:
                if found is None:
                    return None
                state = _who_may_open(found)
                acl = encode(entries_for(state.uids, group_open=state.group_open))
                sound = found == self._gated(path, found, acl, settings)
            except (OSError, ValueError):
                return None
        return msgspec.structs.replace(state, sound=sound)


def _read_or_none(path: str) -> Access | None:
    try:
        return access.read(path)
    except OSError:
        return None


def _who_may_open(found: Access) -> GateState:
    """Everybody whom owner, mode and list let in.

    Raises:
        ValueError: The list is in a form unknown here.
    """
    owner = {found.uid} - {os.geteuid()}
    if found.acl is None:
        return GateState(uids=frozenset(owner), group_open=bool(found.mode & 0o066))
    entries = decode(found.acl)
    return GateState(uids=users(entries) | owner, group_open=admits_more(entries))


def _before_gating(found: Access) -> Access:
    """The same, less a list that only a gate writes: what an agent left whose memory is lost."""
    try:
        entries = decode(found.acl) if found.acl is not None else ()
    except ValueError:
        return found
    if not entries or entries != entries_for(users(entries), group_open=admits_more(entries)):
        return found
    return msgspec.structs.replace(found, mode=GATED_MODE, acl=None)
