"""The same on real nodes with real ACLs and people, where things hang.

Another process has a descriptor on a file system whose server never answers, and somebody in the plan
has a name that the name service never resolves. What 1,000 processes add to each look is among the
figures of `holders`.
"""

import contextlib
import ctypes
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench.ends import GRACE_S, Jobs, Slots, run
from bench.figures import Figure
from bench.gpu_host import HANGS, NAME, OPENED, UUIDS, GpuHost
from bench.site import Site
from tests.host.control_plane import ControlPlaneDouble, grant
from tests.waiting import until

FIRST_UID = 61_001
_UMOUNT_FORCE = 1


def measure(site: Site) -> Iterator[Figure]:
    count = site.much(100, 12)
    folder = site.folder / "slot-end-in-trouble"
    folder.mkdir(mode=0o711)
    site.folder.chmod(0o711)
    host = GpuHost(folder)
    used = UUIDS[: len(OPENED)]
    people = [f"u{FIRST_UID + number}" for number in range(len(used))]
    slots = Slots(devices=used, people=people, step_s=0.6, slot_s=1.5, job_s=1.2)
    jobs = Jobs(folder)
    running: dict[int, list[int]] = {}

    def begin(number: int) -> int:
        device = number % len(used)
        pid = jobs.start(f"{host.node(device)} {FIRST_UID + device}")
        running[device] = [pid]
        host.listed(running)
        return pid

    try:
        with (
            _held_dead_mount(folder / "dead"),
            ControlPlaneDouble(NAME) as plane,
        ):
            plane.settings = msgspec.structs.replace(host.settings, grace_s=GRACE_S, sample_s=1)
            plane.grants = (grant(UUIDS[-1], HANGS, booking=10_000),)
            with host.worker(plane.url):
                until(lambda: plane.samples, limit_s=60)
                done = run(plane, jobs, slots, count=count, begin=begin)
    finally:
        jobs.close()
    yield from done.figures(f"slot end while things hang ({count} ends)")


@contextlib.contextmanager
def _held_dead_mount(place: Path) -> Iterator[None]:
    """A process has a descriptor on it; whoever asks the file system anything waits for ever."""
    libc = ctypes.CDLL(None, use_errno=True)
    place.mkdir()
    server = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0".encode()
    if libc.mount(b"dead", os.fsencode(place), b"fuse", 0, options):
        raise OSError(ctypes.get_errno(), "cannot mount")
    script = "import os, sys; os.open(sys.argv[1], os.O_PATH); sys.stdin.read()"
    holder = subprocess.Popen([sys.executable, "-c", script, place], stdin=subprocess.PIPE)
    try:
        yield
    finally:
        holder.communicate()
        libc.umount2(os.fsencode(place), _UMOUNT_FORCE)
        os.close(server)
