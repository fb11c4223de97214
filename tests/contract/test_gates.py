"""What every gate does alike. A new gate is added to `GATES` and to nothing else here."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reservations.core.enforcement import GateState
from workers.host.gates.acl import AclGate
from workers.host.gates.base import Gate, GateError
from workers.host.gates.record import RecordGate

ALICE, BOB = 61001, 61002


def acl(folder: Path) -> Gate:
    """On plain files: the kernel keeps the same ACLs for them, and their owner may set them."""
    nodes = {}
    for device in ("GPU-a", "GPU-b"):
        paths = [folder / f"{device}-{number}" for number in range(2)]
        for path in paths:
            path.touch()
            path.chmod(0o660)
        nodes[device] = [str(path) for path in paths]
    return AclGate(nodes)


def record(folder: Path) -> Gate:
    return RecordGate(folder / "gate.json", ["GPU-a", "GPU-b"])


GATES = [acl, record]


@pytest.fixture(params=GATES, ids=[make.__name__ for make in GATES])
def gate(request: pytest.FixtureRequest, tmp_path: Path) -> Gate:
    make: Callable[[Path], Gate] = request.param
    return make(tmp_path)


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


def test_a_new_gate_over_the_same_devices_sees_what_the_last_one_set(
    request: pytest.FixtureRequest, tmp_path: Path, gate: Gate
) -> None:
    gate.set("GPU-a", [ALICE], group_open=False)

    again = type(gate)(*again_with(gate, tmp_path))

    assert again.observe()["GPU-a"] == GateState(uids=frozenset({ALICE}))


def again_with(gate: Gate, folder: Path) -> tuple[object, ...]:
    """What a restarted agent would make the gate from."""
    if isinstance(gate, RecordGate):
        return (folder / "gate.json",)
    return ({"GPU-a": [str(folder / f"GPU-a-{number}") for number in range(2)]},)


def test_a_record_that_cannot_be_read_is_an_error_and_not_an_open_gate(tmp_path: Path) -> None:
    (tmp_path / "gate.json").write_text("{")

    with pytest.raises(GateError):
        record(tmp_path).observe()


def test_a_missing_node_is_unknown_and_cannot_be_set(tmp_path: Path) -> None:
    gate = acl(tmp_path)
    os.unlink(tmp_path / "GPU-a-0")

    assert gate.observe()["GPU-a"] is None
    assert gate.observe()["GPU-b"] is not None
    with pytest.raises(GateError):
        gate.set("GPU-a", [ALICE], group_open=False)
