"""A person with more processes on a device than the agent may open descriptors hides nobody by that."""

import contextlib
import itertools
import os
import resource
import signal
from collections.abc import Callable, Iterator

import pytest

from tests.core.stage import ALICE, BOB, at, grant
from tests.host.people import child, wait_for_ever
from tests.host.slot import Bench
from tests.waiting import until
from workers.host.descriptors import held_numbers
from workers.host.processes import read_facts
from workers.host.room import NoRoomError, kept_at_most

pytestmark = pytest.mark.root


def many() -> int:
    """More processes than may be kept while there is room for ten less, whatever this one has open."""
    return 60 + len(os.listdir("/proc/self/fd"))


@contextlib.contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = (number for number in itertools.count() if _is_free(number))
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (next(itertools.islice(free, count, None)), before[1])
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _is_free(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return True
    return False


def _all_dead(group: int) -> bool:
    """A zombie is dead: when the machine's first process takes it away is not for us to wait for."""
    return not any(
        _group_of(int(name)) == group and read_facts(int(name))
        for name in os.listdir("/proc")
        if name.isdigit()
    )


def _group_of(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return None


def crowd(node: str, size: int) -> Callable[[Callable[[], None]], None]:
    def body(ready: Callable[[], None]) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.open(node, os.O_RDWR)
        for _ in range(size):
            if os.fork() == 0:
                wait_for_ever()
        ready()
        wait_for_ever()

    return body


def test_a_crowd_that_is_larger_than_the_agents_room_is_seen_and_ended(bench: Bench) -> None:
    bench.grants = [grant(ALICE), grant(BOB, at(hours=1))]
    bench.tick(at(minutes=1))
    size = many()
    with child(ALICE, crowd(bench.node, size)) as train, descriptors_left(size - 10):
        assert kept_at_most() < size
        bench.listed = [train.pid]

        bench.tick(at(hours=1))
        assert len(bench.look().holders or ()) > size
        bench.tick(at(10, hours=1))
        assert "gone" not in bench.tick(at(10.1, hours=1))
        assert not bench.opens_for(BOB)

        train.reap()
        # Each time as many as there is room for.
        for seconds in (11, 12, 13):
            bench.tick(at(seconds, hours=1))
        until(lambda: _all_dead(train.pid))
        assert "gone" in [report.kind for report in bench.reports] + bench.tick(at(14, hours=1))
        assert bench.opens_for(BOB)


def test_without_any_room_nobody_is_taken_for_gone(bench: Bench) -> None:
    with child(ALICE, crowd(bench.node, 2)) as train:
        bench.listed = [train.pid]
        with descriptors_left(0), pytest.raises(NoRoomError):
            read_facts(train.pid)
        with descriptors_left(0), pytest.raises(NoRoomError):
            held_numbers(train.pid)
