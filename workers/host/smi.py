"""``berth-host smi``: what scripts ask `nvidia-smi --query-gpu=… --format=csv`, for closed devices too.

Names, units and punctuation are those of nvidia-smi, so that a script needs another command and nothing
else. Old data is no answer: a script cannot see that it is old.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from workers.host.plain_text import plain
from workers.host.public import PublicDevice, PublicHost, PublicProcess

UNKNOWN = "[N/A]"
MAX_VALUE = 200
MIB = 2**20
OPTIONS = frozenset({"csv", "noheader", "nounits"})
Row = TypeVar("Row")


class WrongQuestion(ValueError):
    """A field or a format that does not exist; the text names those that do."""


@dataclass(frozen=True, slots=True)
class Field(Generic[Row]):
    """One column: its name, its unit if it has one, and its value in that unit, None if unknown."""

    name: str
    value: Callable[[Row], object]
    unit: str = ""

    @property
    def heading(self) -> str:
        return f"{self.name} [{self.unit}]" if self.unit else self.name

    def shown(self, row: Row, *, units: bool) -> str:
        value = self.value(row)
        if value is None:
            return UNKNOWN
        text = plain(str(value), limit=MAX_VALUE)
        return _quoted(f"{text} {self.unit}" if units and self.unit else text)


@dataclass(frozen=True, slots=True)
class Work:
    """A process on a device."""

    process: PublicProcess
    device: PublicDevice


@dataclass(frozen=True, slots=True)
class Format:
    header: bool = True
    units: bool = True


def read_format(words: str) -> Format:
    """Of ``csv[,noheader][,nounits]``.

    Raises:
        WrongQuestion: it says anything else.
    """
    options = words.split(",")
    if "csv" not in options or set(options) - OPTIONS:
        raise WrongQuestion(f"--format={words}: expected csv[,noheader][,nounits]")
    return Format(header="noheader" not in options, units="nounits" not in options)


def devices(content: PublicHost, wanted: str, how: Format) -> str:
    """One line for each whole GPU, by index; ``wanted`` are names of fields, with commas.

    Raises:
        WrongQuestion: there is no such field.
    """
    gpus = [device for device in content.devices if device.kind == "gpu"]
    return _table(gpus, _chosen(_OF_DEVICES, _ALIASES, wanted), how)


def processes(content: PublicHost, wanted: str, how: Format) -> str:
    """One line for each process on each device.

    Raises:
        WrongQuestion: there is no such field.
    """
    work = [
        Work(process, device) for device in content.devices for process in device.processes or ()
    ]
    return _table(work, _chosen(_OF_PROCESSES, _PROCESS_ALIASES, wanted), how)


def _chosen(
    known: Sequence[Field[Row]], aliases: Mapping[str, str], wanted: str
) -> list[Field[Row]]:
    by_name = {field.name: field for field in known}
    names = [aliases.get(name.strip(), name.strip()) for name in wanted.split(",")]
    for name in names:
        if name not in by_name:
            listed = ", ".join(by_name)
            shown = plain(name, limit=MAX_VALUE)
            raise WrongQuestion(f'field "{shown}" is not known here; known are: {listed}')
    return [by_name[name] for name in names]


def _table(rows: Iterable[Row], fields: Sequence[Field[Row]], how: Format) -> str:
    lines = [", ".join(field.heading for field in fields)] if how.header else []
    lines += [", ".join(field.shown(row, units=how.units) for field in fields) for row in rows]
    return "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    """Only where it must be: scripts do not expect quotes."""
    if "," in text or '"' in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def _mib(amount: int | None) -> int | None:
    return None if amount is None else amount // MIB


def _rounded(number: float | None) -> int | None:
    return None if number is None else round(number)


def _watts(number: float | None) -> str | None:
    return None if number is None else f"{number:.2f}"


def _free(device: PublicDevice) -> int | None:
    total, used = device.memory_total_bytes, device.memory_used_bytes
    if total is None or used is None:
        return None
    return max(0, total - used - (device.memory_reserved_bytes or 0))


def _listed(names: tuple[str, ...] | None) -> str | None:
    return None if names is None else " ".join(names)


def _instant(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat(timespec="seconds")


_OF_DEVICES: tuple[Field[PublicDevice], ...] = (
    Field("index", lambda device: device.index),
    Field("name", lambda device: device.model),
    Field("uuid", lambda device: device.uuid),
    Field("pci.bus_id", lambda device: device.bus_id or None),
    Field("utilization.gpu", lambda device: _rounded(device.utilization_percent), "%"),
    Field("memory.total", lambda device: _mib(device.memory_total_bytes), "MiB"),
    Field("memory.used", lambda device: _mib(device.memory_used_bytes), "MiB"),
    Field("memory.free", lambda device: _mib(_free(device)), "MiB"),
    Field("memory.reserved", lambda device: _mib(device.memory_reserved_bytes), "MiB"),
    Field("temperature.gpu", lambda device: _rounded(device.temperature_c)),
    Field("power.draw", lambda device: _watts(device.power_w), "W"),
    Field("power.limit", lambda device: _watts(device.power_limit_w), "W"),
    Field("fan.speed", lambda device: _rounded(device.fan_percent), "%"),
    Field("clocks.current.sm", lambda device: _rounded(device.sm_clock_mhz), "MHz"),
    # These nvidia-smi does not know.
    Field("berth.verdict", lambda device: device.verdict),
    Field("berth.held_by", lambda device: _listed(device.held_by)),
    Field("berth.booked_by", lambda device: _listed(device.booked_by)),
    Field("berth.booked_until", lambda device: _instant(device.booked_until)),
    Field("berth.next_booking", lambda device: _instant(device.next_booking_at)),
)
_ALIASES = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "clocks.sm": "clocks.current.sm",
}
_PROCESS_ALIASES = {"name": "process_name", "used_memory": "used_gpu_memory"}
_OF_PROCESSES: tuple[Field[Work], ...] = (
    Field("gpu_uuid", lambda work: work.device.uuid),
    Field("gpu_name", lambda work: work.device.model),
    Field("gpu_bus_id", lambda work: work.device.bus_id or None),
    Field("pid", lambda work: work.process.pid),
    # Nobody's command line is shown to others.
    Field("process_name", lambda work: None),
    Field("used_gpu_memory", lambda work: _mib(work.process.memory_bytes), "MiB"),
    Field("berth.user", lambda work: work.process.user),
)
DEFAULT_FIELDS = (
    "index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,"
    "berth.verdict,berth.booked_by,berth.booked_until"
)
