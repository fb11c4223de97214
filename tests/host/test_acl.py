"""The gate of access control lists on a real kernel: raw uids without accounts open stand-in nodes."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from reservations.core.enforcement import GateState
from tests.host.gates import (
    ACCESS_GROUP,
    ALICE,
    BOB,
    CAROL,
    GPU,
    acl_gate,
    make_node,
    opening,
)
from tests.host.people import as_person
from workers.host.gates.access import Access, read
from workers.host.gates.acl import AclGate
from workers.host.gates.base import GateError
from workers.host.gates.helper import HelperSettings
from workers.host.gates.helper import read as read_settings
from workers.host.gates.posix_acl import (
    ATTRIBUTE,
    GROUP_OBJ,
    MASK,
    NO_ID,
    OTHER,
    USER,
    USER_OBJ,
    encode,
    entries_for,
)

pytestmark = pytest.mark.root
# As the page on hosts has the driver configured.
RIGHT = HelperSettings(uid=0, gid=ACCESS_GROUP, mode=0o660)


@pytest.fixture
def node(place: Path) -> str:
    return make_node(place / "nvidia0")


@pytest.fixture
def gate(node: str, place: Path) -> AclGate:
    return acl_gate({GPU: [node]}, place)


def seen(gate: AclGate) -> GateState:
    state = gate.observe()[GPU]
    assert state is not None
    return state


def test_a_node_is_refused_before_the_slot_opens_in_it_and_is_refused_after_it(
    node: str, gate: AclGate
) -> None:
    gate.set(GPU, [], group_open=False)
    assert opening(node, ALICE, ACCESS_GROUP) == errno.EACCES

    gate.set(GPU, [ALICE], group_open=False)
    assert opening(node, ALICE, ACCESS_GROUP) == errno.ENXIO
    assert opening(node, BOB, ACCESS_GROUP) == errno.EACCES

    gate.set(GPU, [BOB], group_open=False)
    assert opening(node, ALICE, ACCESS_GROUP) == errno.EACCES
    assert opening(node, BOB) == errno.ENXIO


def test_open_to_the_group_lets_members_in_and_nobody_else(node: str, gate: AclGate) -> None:
    gate.set(GPU, [], group_open=True)

    assert opening(node, ALICE, ACCESS_GROUP) == errno.ENXIO
    assert opening(node, BOB) == errno.EACCES


@pytest.mark.parametrize("uids", [[], [ALICE], [ALICE, BOB]])
@pytest.mark.parametrize("settings", [None, RIGHT])
def test_owner_group_and_mode_are_what_the_drivers_helper_wants(
    node: str, place: Path, uids: list[int], settings: HelperSettings | None
) -> None:
    """It compares these three, and rewrites what differs."""
    acl_gate({GPU: [node]}, place, helper_settings=settings).set(GPU, uids, group_open=False)

    found = os.stat(node)
    assert stat.S_IMODE(found.st_mode) == 0o660
    assert (found.st_uid, found.st_gid) == (0, ACCESS_GROUP)


def test_the_group_is_the_drivers_and_not_the_nodes_where_the_driver_names_one(
    node: str, place: Path
) -> None:
    os.chown(node, 0, 61999)
    gate = acl_gate({GPU: [node]}, place, helper_settings=RIGHT)

    gate.set(GPU, [ALICE], group_open=False)

    assert os.stat(node).st_gid == ACCESS_GROUP
    assert seen(gate).sound


def as_modprobe(node: str) -> None:
    """What the setuid helper does with stock settings."""
    os.chmod(node, 0o666)
    os.chown(node, 0, 0)


@pytest.mark.parametrize(
    "undo",
    [
        lambda node: os.chmod(node, 0o666),
        lambda node: os.chmod(node, 0o600),
        lambda node: os.chmod(node, 0o640),
        lambda node: os.chmod(node, 0o1660),
        lambda node: os.chown(node, BOB, -1),
        lambda node: os.chown(node, -1, 61999),
        lambda node: os.removexattr(node, ATTRIBUTE),
        as_modprobe,
    ],
    ids=["0666", "0600", "0640", "sticky", "chown", "chgrp", "no list", "nvidia-modprobe"],
)
def test_whatever_somebody_changed_is_seen_and_put_right(
    node: str, gate: AclGate, undo: Callable[[str], None]
) -> None:
    gate.set(GPU, [ALICE], group_open=False)

    undo(node)

    assert not seen(gate).sound
    gate.set(GPU, [ALICE], group_open=False)
    assert seen(gate) == GateState(uids=frozenset({ALICE}))
    assert opening(node, BOB, ACCESS_GROUP) == errno.EACCES
    assert opening(node, ALICE) == errno.ENXIO
    assert read(node).gid == ACCESS_GROUP


def test_an_owner_who_may_open_the_node_is_named_among_those_who_may(
    node: str, gate: AclGate
) -> None:
    gate.set(GPU, [], group_open=False)
    os.chown(node, BOB, -1)
    assert opening(node, BOB) == errno.ENXIO

    assert seen(gate) == GateState(uids=frozenset({BOB}), sound=False)
    gate.set(GPU, [], group_open=False)
    assert opening(node, BOB) == errno.EACCES


def test_people_whom_somebody_else_let_in_are_seen_and_replaced(node: str, gate: AclGate) -> None:
    gate.set(GPU, [ALICE], group_open=False)
    os.setxattr(node, ATTRIBUTE, encode(entries_for([ALICE, BOB], group_open=False)))
    assert opening(node, BOB) == errno.ENXIO

    assert seen(gate).uids == {ALICE, BOB}
    gate.set(GPU, [ALICE], group_open=False)
    assert opening(node, BOB) == errno.EACCES


def test_a_list_that_distributions_put_on_nodes_is_replaced_whole(node: str, gate: AclGate) -> None:
    """Such as the desktop user's, and a group of video users."""
    entries = (
        (USER_OBJ, 6, NO_ID), (USER, 6, CAROL), (GROUP_OBJ, 6, NO_ID), (0x08, 6, 44),
        (MASK, 6, NO_ID), (OTHER, 0, NO_ID),
    )  # fmt: skip
    os.setxattr(node, ATTRIBUTE, encode(entries))
    assert seen(gate) == GateState(uids=frozenset({CAROL}), group_open=True, sound=False)

    gate.set(GPU, [ALICE], group_open=False)

    assert seen(gate) == GateState(uids=frozenset({ALICE}))
    assert opening(node, CAROL, 44) == errno.EACCES


def test_a_node_made_anew_by_a_driver_reload_is_not_taken_for_gated(
    node: str, gate: AclGate
) -> None:
    gate.set(GPU, [ALICE], group_open=False)

    os.unlink(node)
    make_node(Path(node), mode=0o666)

    assert seen(gate) == GateState(group_open=True, sound=False)


def test_root_and_always_open_uids_do_not_disturb_each_other(gate: AclGate) -> None:
    gate.set(GPU, [0, 112, ALICE], group_open=False)

    assert seen(gate) == GateState(uids=frozenset({112, ALICE}))


def test_closing_leaves_descriptors_that_are_open_as_they_are(place: Path) -> None:
    """So holders must be found and stopped: the gate alone does not end a slot."""
    path = place / "zero"
    os.mknod(path, stat.S_IFCHR | 0o660, os.makedev(1, 5))
    descriptor = os.open(path, os.O_RDWR)
    acl_gate({GPU: [str(path)]}, place).set(GPU, [], group_open=False)

    assert as_person(ALICE, lambda: len(os.read(descriptor, 4))) == 4
    os.close(descriptor)


def test_nodes_of_one_device_that_differ_are_open_where_any_is(place: Path) -> None:
    paths = [make_node(place / f"nvidia{minor}", minor=minor) for minor in range(2)]
    gate = acl_gate({GPU: paths}, place)
    gate.set(GPU, [ALICE], group_open=False)
    acl_gate({GPU: paths[1:]}, place).set(GPU, [BOB], group_open=False)

    assert seen(gate) == GateState(uids=frozenset({ALICE, BOB}), sound=False)


class TestOriginals:
    """A device is given back as it was before it was first gated."""

    DESKTOP = Access(
        uid=CAROL,
        gid=44,
        mode=0o664,
        acl=encode(
            [
                (USER_OBJ, 6, NO_ID), (USER, 4, BOB), (GROUP_OBJ, 6, NO_ID),
                (MASK, 6, NO_ID), (OTHER, 4, NO_ID),
            ]
        ),
    )  # fmt: skip

    def as_on_a_desktop(self, node: str) -> None:
        os.chown(node, CAROL, 44)
        os.chmod(node, 0o664)
        os.setxattr(node, ATTRIBUTE, self.DESKTOP.acl or b"")

    def test_owner_group_mode_and_list_come_back(self, node: str, gate: AclGate) -> None:
        self.as_on_a_desktop(node)
        gate.set(GPU, [ALICE], group_open=False)
        gate.set(GPU, [BOB], group_open=True)

        gate.restore(GPU)

        assert read(node) == self.DESKTOP

    def test_also_after_the_agent_has_started_anew(
        self, node: str, gate: AclGate, place: Path
    ) -> None:
        self.as_on_a_desktop(node)
        gate.set(GPU, [ALICE], group_open=False)
        again = acl_gate({GPU: [node]}, place)
        again.set(GPU, [BOB], group_open=False)

        again.restore(GPU)

        assert read(node) == self.DESKTOP

    @pytest.mark.parametrize("mode", [0o666, 0o600, 0o440])
    def test_a_mode_without_a_list_comes_back(self, node: str, gate: AclGate, mode: int) -> None:
        os.chmod(node, mode)
        gate.set(GPU, [ALICE], group_open=False)

        gate.restore(GPU)

        assert read(node) == Access(uid=0, gid=ACCESS_GROUP, mode=mode)

    def test_a_node_made_anew_is_given_back_as_the_new_one_was(
        self, node: str, gate: AclGate
    ) -> None:
        os.chmod(node, 0o666)
        gate.set(GPU, [ALICE], group_open=False)
        os.unlink(node)
        make_node(Path(node), mode=0o640)
        gate.set(GPU, [ALICE], group_open=False)

        gate.restore(GPU)

        assert read(node) == Access(uid=0, gid=ACCESS_GROUP, mode=0o640)

    def test_a_new_node_that_was_never_gated_is_left_as_it_is(
        self, node: str, gate: AclGate
    ) -> None:
        gate.set(GPU, [ALICE], group_open=False)
        os.unlink(node)
        make_node(Path(node), mode=0o666)

        gate.restore(GPU)

        assert read(node).mode == 0o666

    def test_what_another_boot_remembers_is_not_about_this_node(
        self, node: str, gate: AclGate, place: Path
    ) -> None:
        os.chmod(node, 0o666)
        gate.set(GPU, [ALICE], group_open=False)
        os.chmod(node, 0o640)
        os.removexattr(node, ATTRIBUTE)

        acl_gate({GPU: [node]}, place, boot_id="the next boot").restore(GPU)

        assert read(node).mode == 0o640

    @pytest.mark.parametrize("content", [None, b"{", b'{"/dev/nvidia0": 1}'])
    def test_a_gate_whose_memory_is_lost_is_opened_to_the_group(
        self, node: str, gate: AclGate, place: Path, content: bytes | None
    ) -> None:
        gate.set(GPU, [ALICE], group_open=False)
        (place / "originals.json").unlink()
        if content is not None:
            (place / "originals.json").write_bytes(content)
        again = acl_gate({GPU: [node]}, place)
        again.set(GPU, [BOB], group_open=False)

        again.restore(GPU)

        assert read(node) == Access(uid=0, gid=ACCESS_GROUP, mode=0o660)

    def test_the_file_is_for_root_alone(self, gate: AclGate, place: Path) -> None:
        gate.set(GPU, [ALICE], group_open=False)

        assert stat.S_IMODE((place / "originals.json").stat().st_mode) == 0o600


class TestHelper:
    """The driver says what its setuid helper does to the nodes."""

    PARAMETERS = (
        "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 990\nDeviceFileMode: 432\n"
        'RegistryDwords: ""\nRmMsg: ""\n'
    )

    def settings(self, folder: Path, text: str) -> HelperSettings | None:
        (folder / "params").write_text(text)
        return read_settings(folder / "params")

    def test_the_numbers_of_the_file_are_decimal(self, place: Path) -> None:
        settings = self.settings(place, self.PARAMETERS)

        assert settings == HelperSettings(uid=0, gid=990, mode=0o660)
        assert settings.objection == ""

    def test_a_helper_that_leaves_nodes_alone_wants_nothing_of_them(self, place: Path) -> None:
        text = self.PARAMETERS.replace("Files: 1", "Files: 0")

        assert self.settings(place, text) is None

    def test_numbers_that_mean_nothing_are_not_taken(self, place: Path) -> None:
        text = "DeviceFileUID: 4294967295\nDeviceFileGID: 4294967295\nDeviceFileMode: 438\n"

        assert self.settings(place, text) == HelperSettings(uid=0, gid=None, mode=0o666)

    def test_without_a_driver_there_is_no_helper(self, place: Path) -> None:
        assert read_settings(place / "params") is None

    @pytest.mark.parametrize(
        "settings",
        [HelperSettings(mode=660), HelperSettings(mode=0o600), HelperSettings(uid=BOB, mode=0o660)],
        ids=["660 in decimal", "0600", "another owner"],
    )
    def test_a_helper_against_whom_no_gate_can_stand_is_not_fought(
        self, node: str, place: Path, settings: HelperSettings
    ) -> None:
        os.chmod(node, settings.mode)
        gate = acl_gate({GPU: [node]}, place, helper_settings=settings)
        before = os.stat(node)

        with pytest.raises(GateError, match="berth-host doctor"):
            gate.set(GPU, [ALICE], group_open=False)

        assert os.stat(node) == before

    def test_the_helpers_own_mode_is_overruled_though_it_comes_back(
        self, node: str, place: Path
    ) -> None:
        os.chmod(node, 0o666)
        gate = acl_gate({GPU: [node]}, place, helper_settings=HelperSettings())

        gate.set(GPU, [ALICE], group_open=False)

        assert opening(node, BOB) == errno.EACCES

    def test_nodes_of_other_drivers_are_not_the_helpers(self, place: Path) -> None:
        path = place / "full"
        os.mknod(path, stat.S_IFCHR | 0o660, os.makedev(1, 7))
        os.chown(path, 0, ACCESS_GROUP)
        settings = HelperSettings(gid=990, mode=660)
        gate = acl_gate({GPU: [str(path)]}, place, helper_settings=settings)

        gate.set(GPU, [ALICE], group_open=False)

        assert read(str(path)).gid == ACCESS_GROUP
        assert seen(gate).sound
