"""A nudge until a new grant is open: the broker, the worker, the plan over HTTP, and the ACL on the node.

The reference does the same with nothing in between: pop from a list in Redis, GET the plan, set the ACL.
"""

import os
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from itertools import count

import msgspec
import redis
from celery import Celery

from bench.crowd_of_processes import FIRST_UID
from bench.figures import Figure, percentile
from bench.gpu_host import NAME, UUIDS, GpuHost
from bench.site import Site
from reservations.core import wire
from tests import servers
from tests.host.control_plane import TOKEN, ControlPlaneDouble, grant
from tests.waiting import until
from workers.host.gates.posix_acl import ATTRIBUTE, decode, encode, entries_for, users

ALLOWED_MS = 1_000
# The control plane nudges a host at most ten times a second.
PAUSE_S = 0.1


def measure(site: Site) -> Iterator[Figure]:
    times = site.much(100, 16)
    folder = site.folder / "nudge"
    folder.mkdir()
    host = GpuHost(folder)
    with (
        servers.redis_server() as url,
        ControlPlaneDouble(NAME) as plane,
        Celery(broker=url) as sender,
        host.worker(plane.url, redis_url=url),
    ):
        plane.settings = host.settings
        sender.conf.broker_transport_options = {"global_keyprefix": wire.host_key_prefix(NAME)}
        log = folder / "worker.log"
        until(lambda: " ready." in log.read_text() and plane.plans_asked, limit_s=60)
        uids = count(FIRST_UID)
        nudged = [_nudge_ms(plane, host, sender, next(uids)) for _ in range(times)]
        with _Bare(url, plane, host) as bare:
            direct = [bare.open_ms(next(uids)) for _ in range(times)]
    for percent in (50, 99):
        value = percentile(nudged, percent)
        yield Figure(
            name=f"nudge → new grant open: p{percent}",
            value=value,
            unit="ms",
            reference_name="bare pop, GET and setxattr",
            reference=percentile(direct, percent),
            target=f"≤ {ALLOWED_MS} ms" if percent == 99 else "—",
            met=percent != 99 or value <= ALLOWED_MS,
        )


def _nudge_ms(plane: ControlPlaneDouble, host: GpuHost, sender: Celery, uid: int) -> float:
    """The one before on the device has just been released."""
    number = uid % len(UUIDS)
    fresh = grant(UUIDS[number], f"u{uid}", booking=uid, start_s=0)
    before = [_released(one, fresh.start, fresh.device) for one in plane.grants]
    plane.grants = (*before, fresh)
    began = time.perf_counter()
    sender.send_task(wire.NUDGE, queue=wire.host_queue(NAME), ignore_result=True)
    until(lambda: _lets_in(host, number, uid), every_s=0.001)
    took_ms = (time.perf_counter() - began) * 1000
    time.sleep(PAUSE_S)
    return took_ms


def _released(one: wire.Grant, at: datetime, device: str) -> wire.Grant:
    running = one.device == device and one.end > at
    return msgspec.structs.replace(one, end=at) if running else one


def _lets_in(host: GpuHost, number: int, uid: int) -> bool:
    try:
        return uid in users(decode(os.getxattr(host.node(number), ATTRIBUTE)))
    except OSError:
        return False


class _Bare:
    """A thread that does what has to be done, and nothing else."""

    def __init__(self, url: str, plane: ControlPlaneDouble, host: GpuHost) -> None:
        self._redis = redis.Redis.from_url(url)
        self._popping = redis.Redis.from_url(url)
        self._request = urllib.request.Request(
            f"{plane.url}/api/v1/agent/plan", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        self._node = host.state_dir / "bare"
        self._node.touch()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> "_Bare":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._redis.lpush("bare", "end")
        self._thread.join()
        self._redis.close()
        self._popping.close()

    def open_ms(self, uid: int) -> float:
        began = time.perf_counter()
        self._redis.lpush("bare", str(uid))
        until(lambda: self._open_to(uid), every_s=0.001)
        return (time.perf_counter() - began) * 1000

    def _open_to(self, uid: int) -> bool:
        try:
            return uid in users(decode(os.getxattr(self._node, ATTRIBUTE)))
        except OSError:
            return False

    def _serve(self) -> None:
        while (uid := self._popping.brpop("bare")[1]) != b"end":
            with urllib.request.urlopen(self._request) as answer:
                answer.read()
            os.setxattr(self._node, ATTRIBUTE, encode(entries_for([int(uid)], group_open=False)))
