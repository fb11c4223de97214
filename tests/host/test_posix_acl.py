"""The kernel's own form of an access control list."""

import os
import struct
from pathlib import Path

import pytest

from tests.host.gates import ALICE, BOB, GPU, acl_gate
from workers.host.gates.posix_acl import (
    ATTRIBUTE,
    GROUP,
    GROUP_OBJ,
    MASK,
    NO_ID,
    OTHER,
    USER,
    admits_more,
    decode,
    encode,
    entries_for,
    users,
)


def test_the_codec_reads_what_it_writes() -> None:
    entries = entries_for([BOB, ALICE, ALICE], group_open=False)

    assert decode(encode(entries)) == entries
    assert [permissions for tag, permissions, _ in entries if tag in (GROUP_OBJ, MASK)] == [0, 6]
    assert [uid for tag, _, uid in entries if tag == USER] == [ALICE, BOB]


@pytest.mark.parametrize("content", [b"", b"\2\0\0", struct.pack("<I", 3), b"\2\0\0\0abc"])
def test_an_acl_in_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match="ACL"):
        decode(content)


def test_the_kernel_keeps_the_acl_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "plain"
    path.touch()

    acl_gate({GPU: [str(path)]}, tmp_path).set(GPU, [ALICE], group_open=False)

    assert os.getxattr(path, ATTRIBUTE) == encode(entries_for([ALICE], group_open=False))


def test_an_entry_that_allows_nothing_lets_nobody_in() -> None:
    assert users([(USER, 0, ALICE), (USER, 4, BOB)]) == {BOB}
    assert not admits_more([(GROUP_OBJ, 0, NO_ID), (OTHER, 1, NO_ID), (MASK, 6, NO_ID)])


@pytest.mark.parametrize("tag", [GROUP_OBJ, GROUP, OTHER])
def test_a_group_or_everybody_is_more_than_the_people_named(tag: int) -> None:
    assert admits_more([(tag, 4, 0)])
