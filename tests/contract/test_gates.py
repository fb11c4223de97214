"""What every gate does alike. A new gate is added to `GATES` and to nothing else here."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reservations.core.enforcement import GateState
from reservations.core.leases import NEVER
from tests.host.gates import ALICE, BOB, acl_gate, bpf_gate, control_group, make_node
from workers.host.gates.base import Gate, GateError
from workers.host.gates.record import RecordGate

EXPORTER = 112
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
DEVICES = ("GPU-a", "GPU-b")

Make = Callable[[], Gate]
"""Makes the gate, and once more what a restarted agent would make over the same devices."""


@contextlib.contextmanager
def record(folder: Path) -> Iterator[Make]:
    yield lambda: RecordGate(folder / "gate.json", DEVICES)


@contextlib.contextmanager
def acl(folder: Path) -> Iterator[Make]:
    """On plain files: the kernel keeps the same lists for them, and their owner may set them."""
    nodes = _paths(folder)
    for path in (path for paths in nodes.values() for path in paths):
        Path(path).touch()
        os.chmod(path, 0o660)
    yield lambda: acl_gate(nodes, folder)


@contextlib.contextmanager
def acl_on_nodes(folder: Path) -> Iterator[Make]:
    nodes = _make_nodes(folder)
    yield lambda: acl_gate(nodes, folder)


@contextlib.contextmanager
def bpf(folder: Path) -> Iterator[Make]:
    nodes = _make_nodes(folder)
    with control_group("user.slice") as group:
        yield lambda: bpf_gate(nodes, folder, [group])


def _paths(folder: Path) -> dict[str, list[str]]:
    return {
        device: [str(folder / f"{device}-{number}") for number in range(2)] for device in DEVICES
    }


def _make_nodes(folder: Path) -> dict[str, list[str]]:
    nodes = _paths(folder)
    for minor, path in enumerate(path for paths in nodes.values() for path in paths):
        make_node(Path(path), minor=minor)
    return nodes


GATES = [
    record,
    acl,
    pytest.param(acl_on_nodes, marks=pytest.mark.root),
    pytest.param(bpf, marks=pytest.mark.bpf),
]
ON_NODES = GATES[1:]


@pytest.fixture(params=GATES, ids=["record", "acl", "acl_on_nodes", "bpf"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    over: Callable[[Path], AbstractContextManager[Make]] = request.param
    with over(tmp_path) as made:
        yield made


@pytest.fixture
def gate(make: Make) -> Gate:
    return make()


def test_a_device_that_was_never_gated_stands_open_to_the_group(gate: Gate) -> None:
    state = gate.observe()["GPU-a"]
    assert state is not None
    assert state.group_open


@pytest.mark.parametrize("group_open", [False, True])
@pytest.mark.parametrize("uids", [(), (ALICE,), (BOB, ALICE)])
def test_what_was_set_is_what_is_seen(gate: Gate, uids: tuple[int, ...], group_open: bool) -> None:
    gate.set("GPU-a", uids, group_open=group_open)

    assert gate.observe()["GPU-a"] == GateState(uids=frozenset(uids), group_open=group_open)


def test_setting_replaces_and_never_adds(gate: Gate) -> None:
    gate.set("GPU-a", [ALICE], group_open=True)
    gate.set("GPU-a", [BOB], group_open=False)

    assert gate.observe()["GPU-a"] == GateState(uids=frozenset({BOB}))


def test_setting_twice_is_harmless(gate: Gate) -> None:
    for _ in range(2):
        gate.set("GPU-a", [ALICE], group_open=False)

    assert gate.observe()["GPU-a"] == GateState(uids=frozenset({ALICE}))


def test_other_devices_stay_as_they_are(gate: Gate) -> None:
    before = gate.observe()["GPU-b"]

    gate.set("GPU-a", [ALICE], group_open=False)

    assert gate.observe()["GPU-b"] == before


def test_restoring_puts_back_what_was_there_and_may_be_repeated(gate: Gate) -> None:
    before = gate.observe()["GPU-a"]
    gate.set("GPU-a", [ALICE], group_open=False)

    gate.restore("GPU-a")
    gate.restore("GPU-a")

    assert gate.observe()["GPU-a"] == before


def test_a_device_that_was_restored_can_be_gated_again(gate: Gate) -> None:
    gate.set("GPU-a", [ALICE], group_open=False)
    gate.restore("GPU-a")

    gate.set("GPU-a", [BOB], group_open=False)

    assert gate.observe()["GPU-a"] == GateState(uids=frozenset({BOB}))


def test_a_new_gate_over_the_same_devices_sees_what_the_last_one_set(make: Make) -> None:
    first = make()
    first.set("GPU-a", [ALICE], group_open=False)

    again = make()

    assert again.observe()["GPU-a"] == GateState(uids=frozenset({ALICE}))
    assert again.observe()["GPU-b"] == first.observe()["GPU-b"]


def test_a_new_gate_restores_what_the_last_one_set(make: Make) -> None:
    first = make()
    before = first.observe()["GPU-a"]
    first.set("GPU-a", [ALICE], group_open=False)

    make().restore("GPU-a")

    assert make().observe()["GPU-a"] == before


def test_who_is_let_in_does_not_depend_on_the_length_of_a_lease(gate: Gate) -> None:
    """Those who are always let in have none."""
    gate.lend({("GPU-a", ALICE): NOW + timedelta(hours=1), ("GPU-a", BOB): NEVER}, NOW)
    gate.set("GPU-a", [ALICE, EXPORTER], group_open=False)
    state = GateState(uids=frozenset({ALICE, EXPORTER}))
    assert gate.observe()["GPU-a"] == state

    gate.lend({("GPU-a", ALICE): NOW + timedelta(hours=2)}, NOW)

    assert gate.observe()["GPU-a"] == state


def test_a_lease_lets_nobody_in_by_itself(gate: Gate) -> None:
    gate.set("GPU-a", [BOB], group_open=False)

    gate.lend({("GPU-a", ALICE): NEVER, ("GPU-unknown", ALICE): NEVER}, NOW)

    assert gate.observe()["GPU-a"] == GateState(uids=frozenset({BOB}))


def test_what_the_gate_does_itself_does_not_disturb_it(gate: Gate) -> None:
    gate.observe()
    gate.set("GPU-a", [ALICE], group_open=False)
    assert not gate.disturbed()

    gate.restore("GPU-a")

    assert not gate.disturbed()


@pytest.mark.parametrize("make", ON_NODES, ids=["acl", "acl_on_nodes", "bpf"], indirect=True)
class TestOnNodes:
    """Gates that close something which others can open again."""

    def test_a_missing_node_is_unknown_and_cannot_be_set(self, gate: Gate) -> None:
        os.unlink(gate.nodes[0])

        assert gate.observe()["GPU-a"] is None
        assert gate.observe()["GPU-b"] is not None
        with pytest.raises(GateError):
            gate.set("GPU-a", [ALICE], group_open=False)

    def test_a_missing_node_needs_no_restoring(self, gate: Gate) -> None:
        gate.set("GPU-a", [ALICE], group_open=False)
        os.unlink(gate.nodes[0])

        gate.restore("GPU-a")

    def test_a_device_that_nobody_knows_can_be_neither_set_nor_restored(self, gate: Gate) -> None:
        with pytest.raises(GateError, match="GPU-unknown"):
            gate.set("GPU-unknown", [ALICE], group_open=False)
        with pytest.raises(GateError, match="GPU-unknown"):
            gate.restore("GPU-unknown")

    def test_a_mode_that_somebody_changed_is_no_sound_gate(self, gate: Gate) -> None:
        gate.set("GPU-a", [ALICE], group_open=False)

        os.chmod(gate.nodes[0], 0o666)

        state = gate.observe()["GPU-a"]
        assert state is not None
        assert state.group_open
        assert not state.sound

    def test_what_somebody_else_does_disturbs_it_until_it_was_seen(self, gate: Gate) -> None:
        gate.set("GPU-a", [ALICE], group_open=False)

        os.chmod(gate.nodes[0], 0o666)

        assert gate.disturbed()
        gate.observe()
        assert not gate.disturbed()


def test_a_record_that_cannot_be_read_is_an_error_and_not_an_open_gate(tmp_path: Path) -> None:
    (tmp_path / "gate.json").write_text("{")

    with pytest.raises(GateError):
        RecordGate(tmp_path / "gate.json", DEVICES).observe()
