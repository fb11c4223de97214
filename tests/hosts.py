"""What a host says, in the shapes of the wire; each builder makes the smallest message that makes sense."""

from datetime import datetime, timedelta
from itertools import count
from typing import Any

from reservations.core.wire import DeviceInfo, Inventory, ProcessUse, Report, Sample, Samples
from reservations.models import Host
from reservations.services import hosts
from reservations.services.actors import BERTH
from tests.build import NOON

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
_serial = count(1)


def registered(name: str = "gpu1", *, mode: str = "enforce", **settings: Any) -> tuple[Host, str]:
    """A host and its token."""
    return hosts.add_host(name, actor=BERTH, now=NOON, mode=mode, settings=settings)


def info(uuid: str, **fields: Any) -> DeviceInfo:
    defaults: dict[str, Any] = {"vendor": "simulated", "index": 0, "model": "Test 80GB"}
    return DeviceInfo(uuid=uuid, **{**defaults, **fields})


def inventory(*devices: DeviceInfo | str) -> Inventory:
    return Inventory(
        agent_version="1",
        devices=tuple(info(one) if isinstance(one, str) else one for one in devices),
    )


def report(kind: str = "opened", *, at: datetime = NOON, **fields: Any) -> Report:
    return Report(**{"id": f"report-{next(_serial):04d}", "at": at, "kind": kind, **fields})


def sample(uuid: str, *users: str, at: datetime = NOON, **fields: Any) -> Sample:
    processes = tuple(
        ProcessUse(pid=100 + number, uid=1000 + number, unix_name=name, memory_bytes=2**30)
        for number, name in enumerate(users)
    )
    defaults: dict[str, Any] = {"utilization_percent": 50.0, "processes": processes}
    return Sample(uuid=uuid, at=at, **{**defaults, **fields})


def samples(*devices: Sample, at: datetime = NOON, **fields: Any) -> Samples:
    return Samples(at=at, agent_version="1", mode="enforce", devices=devices, **fields)
