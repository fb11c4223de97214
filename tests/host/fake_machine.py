"""A folder that stands for a whole machine, all well at first, for the doctor to look at."""

import os
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import msgspec

from reservations.core.wire import DeviceInfo, HostSettings, Plan
from tests.build import NOON
from workers.host.clock import Anchor, boottime_s
from workers.host.doctor import reader, report
from workers.host.doctor.facts import Facts, Finding
from workers.host.doctor.reading.files import Roots
from workers.host.plan_store import StoredPlan

PARAMETERS = "proc/driver/nvidia/params"
BOOT = "9d893ee9-417d-4d1c-91d5-f8dd55b985ac"
GPU_GID = 990
LINES = (
    f'echo "options nvidia NVreg_DeviceFileUID=0 NVreg_DeviceFileGID={GPU_GID} '
    'NVreg_DeviceFileMode=0660" > /etc/modprobe.d/berth.conf',
    "update-initramfs -u   # Debian, Ubuntu; dracut -f on Fedora, RHEL, SUSE",
    "reboot",
)
GOOD = {
    "proc/sys/kernel/osrelease": "6.1.0-13-amd64\n",
    "proc/sys/kernel/random/boot_id": f"{BOOT}\n",
    "proc/self/status": "Name:\tpython3\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n",
    "proc/self/mounts": (
        "/dev/sda1 / ext4 rw 0 0\nproc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n"
        "server:/home /net nfs4 rw 0 0\n"
    ),
    "proc/700/comm": "nvidia-persiste\n",
    PARAMETERS: (
        "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\n"
        f'DeviceFileGID: {GPU_GID}\nDeviceFileMode: 432\nRegistryDwords: ""\n'
    ),
    "sys/fs/cgroup/cgroup.controllers": "cpu memory\n",
    "etc/passwd": "root:x:0:0::/root:/bin/sh\nalice:x:1001:1001::/home/alice:/bin/sh\n",
    "etc/group": f"root:x:0:\nvideo:x:44:\ngpu:x:{GPU_GID}:alice\n",
    "etc/berth/host.env": (
        "# Berth\nBERTH_HOST_NAME=gpu-01\nBERTH_URL=https://berth.example\n"
        'BERTH_HOST_TOKEN="secret"\n'
    ),
}


def finding(id_: str, level: str, text: str, *fix: str) -> Finding:
    return Finding(id=id_, level=level, text=text, fix=fix)


class FakeMachine:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.library_error = ""
        self.wall = NOON
        for path, content in GOOD.items():
            self.write(path, content)
        (root / "etc/berth/host.env").chmod(0o600)
        self.home("/home/alice")
        self.pid_namespace(4026531836)
        for name in ("nvidia0", "nvidia1", "nvidiactl"):
            self.node(name)
        self.plan()

    def write(self, path: str, content: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
        return file

    def change(self, path: str, old: str, new: str) -> None:
        content = (self.root / path).read_text()
        assert old in content
        self.write(path, content.replace(old, new))

    def remove(self, path: str) -> None:
        (self.root / path).unlink()

    def pid_namespace(self, number: int) -> None:
        self.link("proc/self/ns/pid", f"pid:[{number}]")

    def link(self, path: str, target: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.symlink_to(target)

    def home(self, path: str, *, mode: int = 0o700) -> None:
        folder = self.root / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(mode)

    def devices(self, *devices: DeviceInfo) -> None:
        """What the agent has seen since the boot."""
        content = {"boot_id": BOOT, "devices": devices}
        self.write("var/lib/berth/inventory.json", msgspec.json.encode(content).decode())

    def node(self, name: str, *, mode: int = 0o660, uid: int = 0, gid: int = GPU_GID) -> None:
        file = self.write(f"dev/{name}", "")
        os.chown(file, uid, gid)
        file.chmod(mode)

    def plan(self, *, age_s: float = 20, skew_s: float = 0, **settings: object) -> None:
        """A stored plan that was confirmed so long ago, by a server whose clock is so far behind."""
        server = self.wall - timedelta(seconds=skew_s)
        as_of = server - timedelta(seconds=age_s)
        plan = Plan(
            host="gpu-01",
            epoch="1",
            etag="e",
            as_of=as_of,
            server_time=as_of,
            grants=(),
            settings=HostSettings(mode="enforce", **settings),
        )
        anchor = Anchor(boot_id=BOOT, boottime_s=boottime_s(), server_time=server)
        stored = StoredPlan(plan=plan, as_of=as_of, fetched_at=as_of, anchor=anchor)
        body = msgspec.json.encode(stored)
        content = sha256(body).hexdigest() + "\n" + body.decode() + "\n"
        self.write("var/lib/berth/plan.json", content)

    def facts(self, **environ: str) -> Facts:
        paths = {name: self.root / name for name in ("proc", "sys", "dev", "etc", "var")}
        roots = Roots(top=self.root, **paths)
        return reader.read(environ, roots=roots, load=self._load, wall=lambda: self.wall)

    def examine(self, **environ: str) -> tuple[Finding, ...]:
        return report.examine(self.facts(**environ))

    def complaints(self, **environ: str) -> list[Finding]:
        return [finding for finding in self.examine(**environ) if finding.level != "ok"]

    def _load(self, _name: str) -> object:
        if self.library_error:
            raise OSError(self.library_error)
        return None
