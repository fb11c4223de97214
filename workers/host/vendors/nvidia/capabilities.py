"""The nodes that lead to the parts of a divided GPU (MIG).

Every instance has a capability, which the kernel module hands out as /dev/nvidia-caps/nvidia-cap<n>. To
use a part, a program opens that of its GPU instance, that of its compute instance, and the GPU itself.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

# Lines such as "gpu0/gi1/ci0/access 13"; the number after gpu is the minor of the GPU.
_LINE = re.compile(r"gpu(\d+)/gi(\d+)(?:/ci(\d+))?/access (\d+)")


@dataclass(frozen=True, slots=True)
class Instance:
    """A compute instance in its GPU instance; ``gpu`` is the minor of the whole device."""

    gpu: int
    gi: int
    ci: int


class Capabilities:
    """Where the capabilities are numbered, and where their nodes are."""

    def __init__(self, proc: Path = Path("/proc"), dev: Path = Path("/dev")) -> None:
        self._numbers = proc / "driver/nvidia-caps/mig-minors"
        self._nodes = dev / "nvidia-caps"

    def nodes_of(self, instances: Iterable[Instance]) -> Mapping[Instance, tuple[str, ...]]:
        """The nodes that only those may open who may use the instance; none where one is not known.

        A GPU instance with several compute instances is everybody's who uses one of them: its own node
        decides about none.
        """
        numbers = self._read()
        every = frozenset(instances)
        shared = Counter((one.gpu, one.gi) for one in every)
        found = {}
        for one in every:
            of_both = [(one.gpu, one.gi, None), (one.gpu, one.gi, one.ci)]
            wanted = of_both if shared[one.gpu, one.gi] == 1 else of_both[1:]
            known = [numbers[place] for place in wanted if place in numbers]
            complete = len(known) == len(wanted)
            nodes = (str(self._nodes / f"nvidia-cap{number}") for number in known)
            found[one] = tuple(nodes) if complete else ()
        return found

    def _read(self) -> dict[tuple[int, int, int | None], int]:
        try:
            text = self._numbers.read_text("ascii", "replace")
        except OSError:
            return {}
        return {
            (int(gpu), int(gi), int(ci) if ci else None): int(number)
            for gpu, gi, ci, number in _LINE.findall(text)
        }
