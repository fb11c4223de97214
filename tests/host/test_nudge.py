"""Nudges through the real Redis, and the worker as a process of its own."""

import json
import signal
import subprocess
import sys

import pytest
from celery import Celery

from reservations.core import wire
from tests.host.control_plane import grant, real_now
from tests.host.kit import ROOT, SimHost
from tests.waiting import until


@pytest.fixture
def broker(redis_url):
    with Celery("sender", broker=redis_url) as sender:
        prefix = wire.host_key_prefix(SimHost.name)
        sender.conf.broker_transport_options = {"global_keyprefix": prefix}
        yield sender


def test_a_nudge_opens_a_new_grant_long_before_the_heartbeat_would(sim, plane, redis_url, broker):
    plane.settings = type(sim.settings)(mode="enforce", managed=tuple(sim.uuids), sample_s=3600)
    sim.worker(plane.url, redis_url=redis_url)
    until(lambda: not sim.gate().group_open, limit_s=30)
    log = sim.root / "worker.log"
    until(lambda: " ready." in log.read_text(), limit_s=30)
    plane.grants = (grant(sim.uuids[0], "alice"),)
    sent = real_now()

    broker.send_task(wire.NUDGE, queue=wire.host_queue(sim.name), ignore_result=True)

    until(lambda: sim.granted("alice"))
    assert (real_now() - sent).total_seconds() < 2


def test_the_worker_enforces_although_its_broker_is_not_there(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)

    sim.worker(plane.url, redis_url="redis://127.0.0.1:1/0")

    until(lambda: sim.granted("alice"), limit_s=30)


@pytest.mark.parametrize("with_broker", [False, True])
def test_sigterm_ends_the_worker_and_leaves_the_gates(sim, plane, redis_url, with_broker):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    worker = sim.worker(plane.url, redis_url=redis_url if with_broker else "")
    until(lambda: sim.granted("alice"), limit_s=30)

    worker.send_signal(signal.SIGTERM)

    assert worker.wait(20) == 0
    assert sim.granted("alice")


def test_status_tells_what_the_agent_sees(sim, plane):
    plane.grants = (grant(sim.uuids[0], "alice"),)
    sim.agent(plane.url)
    job = sim.job("alice")
    until(lambda: any(job in _holders(sim, index) for index in (0,)))

    shown = _status(sim)

    assert "agent runs, mode enforce" in shown
    assert "alice (61001)" in shown
    assert "gate: open to uid 61001" in shown
    assert f"{job} (61001)" in shown
    assert "no problems" in shown


def _holders(sim, index):
    try:
        found = json.loads(_status(sim, "--json"))
    except json.JSONDecodeError:
        return set()
    held = found["devices"][index]["holders"] if found.get("devices") else None
    return {int(text.split()[0]) for text in held or ()}


def _status(sim, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "workers.host", "status", *arguments],
        cwd=ROOT,
        env=sim.environment("http://127.0.0.1:1"),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout
