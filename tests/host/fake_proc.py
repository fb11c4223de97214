"""A made-up /proc for what no test can bring about on a real machine."""

import os
from pathlib import Path


class FakeProc:
    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "sys/kernel").mkdir(parents=True)
        (root / "sys/kernel/pid_max").write_text("4194304\n")

    def add(
        self,
        pid: int,
        *,
        comm: str = "python3",
        state: str = "S",
        ppid: int = 1,
        uid: int = 61001,
        euid: int | None = None,
        threads: int = 1,
        start_ticks: int = 1000,
        flags: int = 0x400000,
        cgroup: str = "0::/user.slice/user-61001.slice/session-4.scope\n",
        nodes: tuple[str, ...] = (),
    ) -> None:
        folder = self.root / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "task" / str(pid)).mkdir(parents=True)
        euid = uid if euid is None else euid
        tail = f"{state} {ppid} 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 {threads} 0 {start_ticks} 0"
        (folder / "stat").write_text(f"{pid} ({comm}) {tail}\n")
        (folder / "status").write_text(f"Name:\t{comm}\nUid:\t{uid}\t{euid}\t{euid}\t{euid}\n")
        (folder / "cgroup").write_text(cgroup)
        for number, node in enumerate(nodes):
            (folder / "fd" / str(number)).symlink_to(node)


def undying(pid: int) -> int:
    """Stands for a pidfd whose process never ends: the reading end of a pipe that stays silent."""
    reading, writing = os.pipe()
    _silent.append(writing)
    return reading


_silent: list[int] = []
