"""A vendor over the stand-in library, and other programs over the same."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.host.clocks import Hands
from tests.nvml import stand_in
from workers.host.vendors.nvidia import NvidiaVendor

ROOT = Path(__file__).resolve().parents[2]
A, B = "GPU-aaaaaaaa", "GPU-bbbbbbbb"


class Stage:
    """Two idle GPUs, A and B, until the test says otherwise.

    ``proc`` and ``dev`` are where the vendor looks for the capabilities of divided GPUs.
    """

    def __init__(self, folder: Path, *, library: Path, hands: Hands) -> None:
        self.state = folder / "nvml"
        self.proc, self.dev = folder / "proc", folder / "dev"
        self._library = library
        self.hands = hands
        self.clock = hands.clock()
        self.say(stand_in.gpu(A, minor=3), stand_in.gpu(B, minor=1, fan=30))
        self.vendor = NvidiaVendor(self.clock, proc=self.proc, dev=self.dev)

    def say(self, *lines: str) -> None:
        stand_in.write(self.state, *lines)

    def xid(self, uuid: str, number: int) -> None:
        stand_in.event(self.state, uuid, number)

    def count_calls(self) -> None:
        """From now on."""
        self._calls.write_text("")

    @property
    def calls(self) -> Sequence[str]:
        return self._calls.read_text().split()

    def texts(self) -> list[str]:
        """What the vendor says that somebody should know."""
        return [problem.text for problem in self.vendor.problems()]

    def read_with(self, library: Path) -> dict[str, Any]:
        """What another process reads whose pynvml has loaded this library."""
        done = self.run([sys.executable, "-m", "tests.nvml.read"], library)
        answer: dict[str, Any] = json.loads(done)
        return answer

    def run(self, command: Sequence[str], library: Path | None = None) -> str:
        """A program's output; it loads the library as any program would."""
        folder = (library or self._library).parent
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "LD_LIBRARY_PATH": str(folder), "NVML_STAND_IN": str(self.state)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def close(self) -> None:
        self.vendor.close()

    @property
    def _calls(self) -> Path:
        return Path(f"{self.state}.calls")
