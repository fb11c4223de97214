"""A person whose slot on one device ends while hers on another goes on, with real nodes and processes."""

import signal
from pathlib import Path

import pytest

from tests.core.stage import at, grant
from tests.host.people import child
from tests.host.scanning import ALICE, holding
from tests.host.two_devices import FIRST, SECOND, Host
from workers.host.processes import Processes

pytestmark = pytest.mark.root
GRANTS = [
    grant(ALICE, booking=1, device=FIRST),
    grant(ALICE, end=at(hours=5), booking=2, device=SECOND),
]


@pytest.fixture
def host(tmp_path: Path, processes: Processes) -> Host:
    return Host(tmp_path, processes, GRANTS)


def test_only_those_on_the_device_whose_slot_has_ended_are_stopped(host: Host) -> None:
    host.tick(at(0))
    with (
        child(ALICE, holding(host.nodes[FIRST])) as ended,
        child(ALICE, holding(host.nodes[SECOND])) as going_on,
    ):
        host.listed = {FIRST: [ended.pid], SECOND: [going_on.pid]}
        host.tick(at(minutes=30))
        assert not ended.ended()

        host.tick(at(hours=1))

        assert ended.reap() == signal.SIGTERM
        assert not going_on.ended()


def test_a_process_with_both_devices_open_is_stopped_for_the_one_it_may_use_no_longer(
    host: Host,
) -> None:
    """CUDA opens every device it can see; what counts is the one whose list it is on."""
    host.tick(at(0))
    both = (host.nodes[FIRST], host.nodes[SECOND])
    with child(ALICE, holding(*both)) as going_on, child(ALICE, holding(*both)) as ended:
        host.listed = {FIRST: [ended.pid], SECOND: [going_on.pid]}

        host.tick(at(hours=1))

        assert ended.reap() == signal.SIGTERM
        assert not going_on.ended()
