"""The program that the kernel runs whenever a process of a gated control group opens a device.

    an opening of a character device to read or write, whose number is in the table?   else: yes
    is it open to anybody?                                                             then: yes
    is it root who asks?                                                               then: yes
    does the table have this uid for this device, until later than now?                else: no

The table: {uid, major, minor} -> nanoseconds of CLOCK_BOOTTIME, which time asleep is part of, as it is of
a booking. The key of `ANYBODY` makes a device a gated one; its value is 0 while nobody else may open it.
Making a node is not opening it: the driver's helper does that after a boot, in the name of any user.
"""

import struct
from collections.abc import Sequence

# (uid_t)-1: no process has it.
ANYBODY = 0xFFFFFFFF
FOR_EVER = 0xFFFFFFFFFFFFFFFF
KEY, VALUE = struct.Struct("<III"), struct.Struct("<Q")

# struct bpf_cgroup_dev_ctx: access_type, major, minor
_TYPE, _MAJOR, _MINOR = 0, 4, 8
_CHARACTER_DEVICE = 2
_READ_OR_WRITE = 2 | 4
_LOOKUP, _GET_UID_GID, _GET_BOOT_NS = 1, 15, 125
# opcodes, as in Documentation/bpf/standardization/instruction-set.rst
_LOAD32, _LOAD64, _STORE32, _STORE32_IMMEDIATE = 0x61, 0x79, 0x63, 0x62
_SET, _COPY, _COPY32, _ADD, _AND, _SHIFT_RIGHT = 0xB7, 0xBF, 0xBC, 0x07, 0x57, 0x77
_IF_EQUAL, _IF_NOT_EQUAL, _IF_GREATER = 0x15, 0x55, 0x2D
_LOAD_MAP, _CALL, _EXIT = 0x18, 0x85, 0x95
_PSEUDO_MAP_FD = 1
_FRAME = 10
_KEY_AT = -12

Step = tuple[int, int, int, int | str, int]
"""Opcode, destination, source, offset or label to jump to, immediate."""


def code(table: int) -> bytes:
    """The program over the map behind this descriptor."""
    find = [
        (_LOAD_MAP, 1, _PSEUDO_MAP_FD, 0, table),
        (0, 0, 0, 0, 0),
        (_COPY, 2, _FRAME, 0, 0),
        (_ADD, 2, 0, 0, _KEY_AT),
        (_CALL, 0, 0, 0, _LOOKUP),
    ]
    return _assemble(
        [
            (_LOAD32, 6, 1, _TYPE, 0),
            (_COPY, 7, 6, 0, 0),
            (_AND, 7, 0, 0, 0xFFFF),
            (_IF_NOT_EQUAL, 7, 0, "yes", _CHARACTER_DEVICE),
            (_SHIFT_RIGHT, 6, 0, 0, 16),
            (_AND, 6, 0, 0, _READ_OR_WRITE),
            (_IF_EQUAL, 6, 0, "yes", 0),
            (_LOAD32, 7, 1, _MAJOR, 0),
            (_STORE32, _FRAME, 7, _KEY_AT + 4, 0),
            (_LOAD32, 7, 1, _MINOR, 0),
            (_STORE32, _FRAME, 7, _KEY_AT + 8, 0),
            (_STORE32_IMMEDIATE, _FRAME, 0, _KEY_AT, -1),
            *find,
            (_IF_EQUAL, 0, 0, "yes", 0),
            (_LOAD64, 8, 0, 0, 0),
            (_CALL, 0, 0, 0, _GET_BOOT_NS),
            (_COPY, 9, 0, 0, 0),
            (_IF_GREATER, 8, 9, "yes", 0),
            (_CALL, 0, 0, 0, _GET_UID_GID),
            (_COPY32, 0, 0, 0, 0),
            (_IF_EQUAL, 0, 0, "yes", 0),
            (_STORE32, _FRAME, 0, _KEY_AT, 0),
            *find,
            (_IF_EQUAL, 0, 0, "no", 0),
            (_LOAD64, 8, 0, 0, 0),
            (_IF_GREATER, 8, 9, "yes", 0),
            "no",
            (_SET, 0, 0, 0, 0),
            (_EXIT, 0, 0, 0, 0),
            "yes",
            (_SET, 0, 0, 0, 1),
            (_EXIT, 0, 0, 0, 0),
        ]
    )


def _assemble(lines: Sequence[Step | str]) -> bytes:
    """Eight bytes each; a jump counts from the instruction after it."""
    labels: dict[str, int] = {}
    steps: list[Step] = []
    for line in lines:
        if isinstance(line, str):
            labels[line] = len(steps)
        else:
            steps.append(line)
    packed = b""
    for number, (opcode, destination, source, offset, immediate) in enumerate(steps):
        jump = labels[offset] - number - 1 if isinstance(offset, str) else offset
        packed += struct.pack("<BBhi", opcode, source << 4 | destination, jump, immediate)
    return packed
