"""From the configuration to the parts of one host: which vendor, which gate, which people.

A short name is one of ours; anything else is ``module:function``, which gets the same arguments.
"""

import importlib
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reservations.core.wire import DeviceInfo
from workers.host.clock import HostClock, boot_id
from workers.host.config import Config, ConfigError
from workers.host.gates.acl import AclGate
from workers.host.gates.base import Gate
from workers.host.gates.bpf import BpfGate
from workers.host.gates.lease_table import LeaseTable, Unavailable, control_groups
from workers.host.gates.originals import Originals
from workers.host.gates.record import RecordGate
from workers.host.names import SimulatedUsers, SystemUsers, Users
from workers.host.simulation import SimulatedHost
from workers.host.vendors.base import Vendor
from workers.host.vendors.simulated import SimulatedVendor

logger = logging.getLogger(__name__)


def open_vendor(config: Config, clock: HostClock) -> Vendor:
    """The vendor that the configuration names.

    Raises:
        ConfigError: there is none of that name.
    """
    vendor: Vendor = _named(_VENDORS, config.vendor, "BERTH_VENDOR")(config, clock)
    return vendor


def open_gate(config: Config, devices: Sequence[DeviceInfo]) -> Gate:
    """A gate that knows these devices; a new one is made whenever they change.

    Raises:
        ConfigError: there is none of that name.
    """
    gate: Gate = _named(_GATES, config.gate, "BERTH_GATE")(config, devices)
    return gate


def open_users(config: Config) -> Users:
    """Simulated hosts have people of their own; everybody else is who the machine says."""
    if config.vendor == "simulated":
        return SimulatedUsers(SimulatedHost(config.state_dir))
    return SystemUsers()


def _simulated(config: Config, clock: HostClock) -> Vendor:
    return SimulatedVendor(SimulatedHost(config.state_dir), clock)


def _nvidia(config: Config, clock: HostClock) -> Vendor:
    # Only here: a host without NVIDIA devices needs no pynvml.
    from workers.host.vendors.nvidia import NvidiaVendor

    return NvidiaVendor(clock)


def _record(config: Config, devices: Sequence[DeviceInfo]) -> Gate:
    return RecordGate(config.state_dir / "gate.json", [device.uuid for device in devices])


def _acl(config: Config, devices: Sequence[DeviceInfo], *, problem: str = "") -> AclGate:
    nodes = {device.uuid: device.node_paths for device in devices if device.node_paths}
    originals = Originals(config.state_dir / "originals.json", boot_id=boot_id())
    return AclGate(nodes, originals, problem=problem)


def _bpf(config: Config, devices: Sequence[DeviceInfo]) -> Gate:
    """Where the kernel cannot do it the lists alone hold, and say so."""
    try:
        table = LeaseTable(control_groups(config.slices))
        return BpfGate(_acl(config, devices), table)
    except (Unavailable, OSError) as error:
        text = f"BERTH_GATE=bpf does not work here, so acl alone is used: {error}"
        logger.warning(text)
        return _acl(config, devices, problem=text)


_VENDORS: Mapping[str, Callable[[Config, HostClock], Vendor]] = {
    "nvidia": _nvidia,
    "simulated": _simulated,
}
_GATES: Mapping[str, Callable[[Config, Sequence[DeviceInfo]], Gate]] = {
    "acl": _acl,
    "bpf": _bpf,
    "record": _record,
}


def _named(ours: Mapping[str, Any], name: str, variable: str) -> Any:
    if name in ours:
        return ours[name]
    module, colon, function = name.partition(":")
    if not colon:
        raise ConfigError(f"{variable}={name!r}: expected {', '.join(ours)} or module:function")
    try:
        return getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{variable}={name!r}: {error}") from error
