"""The end of a slot until the gate is closed, the first signal arrives, and a stubborn job is dead.

A real agent in a process of its own over eight simulated devices, and a small control plane over HTTP.
"""

from collections.abc import Iterator

import msgspec

from bench.ends import GRACE_S, Jobs, Slots, run
from bench.figures import Figure
from bench.nursery import PERSON
from bench.site import Site
from tests.host.control_plane import ControlPlaneDouble
from tests.host.kit import SimHost
from tests.waiting import until

DEVICES = 8


def measure(site: Site) -> Iterator[Figure]:
    count = site.much(100, 16)
    folder = site.folder / "slot-end"
    folder.mkdir()
    sim = SimHost(folder, devices=DEVICES)
    sim.settings = msgspec.structs.replace(sim.settings, grace_s=GRACE_S)
    slots = Slots(devices=sim.uuids, people=(PERSON,), step_s=0.3, slot_s=1.2, job_s=0.9)
    jobs = Jobs(sim.state_dir)
    try:
        with ControlPlaneDouble(sim.name) as plane:
            plane.settings = sim.settings
            sim.worker(plane.url)
            until(lambda: plane.samples and not sim.gate().group_open, limit_s=60)
            done = run(
                plane, jobs, slots, count=count,
                begin=lambda number: jobs.start(sim.uuids[number % DEVICES]),
            )  # fmt: skip
    finally:
        jobs.close()
        sim.close()
    yield from done.figures(f"slot end ({count} ends)")
