"""The ACL gate on a real kernel: raw uids without accounts open stand-in nodes of the NVIDIA major.

EACCES: the gate says no. ENXIO: the gate lets in, and there is no driver behind the node.
"""

import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from reservations.core.enforcement import GateState
from tests.host.people import as_person
from workers.host.gates.acl import (
    ATTRIBUTE,
    GROUP_OBJ,
    MASK,
    AclGate,
    decode,
    encode,
    entries_for,
)

ALICE, BOB, ACCESS_GROUP = 61001, 61002, 61900
NVIDIA_MAJOR = 195

needs_root = pytest.mark.root


@pytest.fixture
def node(tmp_path: Path) -> Iterator[str]:
    """A node as the driver makes it: root, access group, 0660. In a folder that everybody may enter."""
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(0o755)
    path = tmp_path / "nvidia0"
    os.mknod(path, stat.S_IFCHR | 0o660, os.makedev(NVIDIA_MAJOR, 0))
    os.chmod(path, 0o660)
    os.chown(path, 0, ACCESS_GROUP)
    yield str(path)
    path.unlink(missing_ok=True)


def opening(path: str, uid: int, *groups: int) -> int:
    """The error number that this person meets; 0 if it opens."""

    def attempt() -> int:
        try:
            os.close(os.open(path, os.O_RDWR))
        except OSError as error:
            return error.errno or -1
        return 0

    return as_person(uid, attempt, groups=groups)


@needs_root
def test_a_node_is_refused_before_the_slot_opens_in_it_and_is_refused_after_it(node: str) -> None:
    gate = AclGate({"GPU-a": [node]})

    gate.set("GPU-a", [], group_open=False)
    assert opening(node, ALICE, ACCESS_GROUP) == errno.EACCES

    gate.set("GPU-a", [ALICE], group_open=False)
    assert opening(node, ALICE, ACCESS_GROUP) == errno.ENXIO
    assert opening(node, BOB, ACCESS_GROUP) == errno.EACCES

    gate.set("GPU-a", [BOB], group_open=False)
    assert opening(node, ALICE, ACCESS_GROUP) == errno.EACCES
    assert opening(node, BOB) == errno.ENXIO


@needs_root
def test_open_to_the_group_lets_members_in_and_nobody_else(node: str) -> None:
    gate = AclGate({"GPU-a": [node]})

    gate.set("GPU-a", [], group_open=True)

    assert opening(node, ALICE, ACCESS_GROUP) == errno.ENXIO
    assert opening(node, BOB) == errno.EACCES


@needs_root
def test_the_mode_stays_0660_with_anybody_or_nobody_let_in(node: str) -> None:
    """The driver's setuid helper compares mode and owner, and rewrites what differs."""
    gate = AclGate({"GPU-a": [node]})

    for uids in ([], [ALICE], [ALICE, BOB]):
        gate.set("GPU-a", uids, group_open=False)
        found = os.stat(node)
        assert stat.S_IMODE(found.st_mode) == 0o660
        assert (found.st_uid, found.st_gid) == (0, ACCESS_GROUP)


@needs_root
@pytest.mark.parametrize("mode", [0o666, 0o600, 0o640])
def test_a_mode_that_somebody_changed_is_seen_and_put_right(node: str, mode: int) -> None:
    gate = AclGate({"GPU-a": [node]})
    gate.set("GPU-a", [ALICE], group_open=False)

    os.chmod(node, mode)

    seen = gate.observe()["GPU-a"]
    assert seen is not None
    assert not seen.sound
    gate.set("GPU-a", [ALICE], group_open=False)
    assert gate.observe()["GPU-a"] == GateState(uids=frozenset({ALICE}))
    assert opening(node, BOB, ACCESS_GROUP) == errno.EACCES
    assert opening(node, ALICE) == errno.ENXIO


@needs_root
def test_a_node_that_was_given_to_somebody_is_taken_back(node: str) -> None:
    gate = AclGate({"GPU-a": [node]})
    gate.set("GPU-a", [], group_open=False)
    os.chown(node, BOB, -1)
    assert opening(node, BOB) == errno.ENXIO

    seen = gate.observe()["GPU-a"]
    assert seen is not None
    assert not seen.sound
    gate.set("GPU-a", [], group_open=False)
    assert opening(node, BOB) == errno.EACCES
    assert gate.observe()["GPU-a"] == GateState()


@needs_root
def test_a_node_made_anew_by_a_driver_reload_is_not_taken_for_gated(node: str) -> None:
    gate = AclGate({"GPU-a": [node]})
    gate.set("GPU-a", [ALICE], group_open=False)

    os.unlink(node)
    os.mknod(node, stat.S_IFCHR | 0o660, os.makedev(NVIDIA_MAJOR, 0))
    os.chmod(node, 0o666)

    assert gate.observe()["GPU-a"] == GateState(group_open=True, sound=False)


@needs_root
def test_root_and_always_open_uids_do_not_disturb_each_other(node: str) -> None:
    gate = AclGate({"GPU-a": [node]})

    gate.set("GPU-a", [0, 112, ALICE], group_open=False)

    assert gate.observe()["GPU-a"] == GateState(uids=frozenset({112, ALICE}))


@needs_root
def test_closing_leaves_descriptors_that_are_open_as_they_are(tmp_path: Path) -> None:
    """So holders must be found and stopped: the gate alone does not end a slot."""
    path = tmp_path / "zero"
    os.mknod(path, stat.S_IFCHR | 0o660, os.makedev(1, 5))
    descriptor = os.open(path, os.O_RDWR)
    AclGate({"GPU-a": [str(path)]}).set("GPU-a", [], group_open=False)

    assert as_person(ALICE, lambda: len(os.read(descriptor, 4))) == 4
    os.close(descriptor)


def test_the_codec_reads_what_it_writes() -> None:
    entries = entries_for([BOB, ALICE, ALICE], group_open=False)

    assert decode(encode(entries)) == entries
    assert [permissions for tag, permissions, _ in entries if tag in (GROUP_OBJ, MASK)] == [0, 6]
    assert [uid for tag, _, uid in entries if tag == 0x02] == [ALICE, BOB]


@pytest.mark.parametrize("content", [b"", b"\2\0\0", struct.pack("<I", 3), b"\2\0\0\0abc"])
def test_an_acl_in_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="ACL"):
        decode(content)


def test_the_kernel_keeps_the_acl_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.touch()
    content = encode(entries_for([ALICE], group_open=False))

    AclGate({"GPU-a": [str(path)]}).set("GPU-a", [ALICE], group_open=False)

    assert os.getxattr(path, ATTRIBUTE) == content


def test_nodes_of_one_device_that_differ_are_open_where_any_is(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("gpu", "instance")]
    for path in paths:
        Path(path).touch()
    gate = AclGate({"GPU-a": paths})
    gate.set("GPU-a", [ALICE], group_open=False)
    AclGate({"GPU-a": paths[1:]}).set("GPU-a", [BOB], group_open=False)

    assert gate.observe()["GPU-a"] == GateState(uids=frozenset({ALICE, BOB}), sound=False)
