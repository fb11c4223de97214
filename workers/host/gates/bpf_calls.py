"""bpf(2), as far as one program on control groups needs it. `include/uapi/linux/bpf.h` has the numbers."""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator

# arch/*/entry/syscalls/*.tbl; a machine that is not here is told that it has no such call.
_NUMBERS = {"x86_64": 321, "aarch64": 280, "ppc64le": 361}
_MAP_CREATE, _MAP_LOOKUP, _MAP_UPDATE, _MAP_DELETE, _MAP_NEXT_KEY, _PROG_LOAD = range(6)
_PROG_ATTACH, _PROG_DETACH = 8, 9
_PROG_FD_BY_ID, _MAP_FD_BY_ID, _OBJ_INFO, _PROG_QUERY = 13, 14, 15, 16
_MAP_TYPE_HASH = 1
_NO_PREALLOC = 1
_PROG_TYPE_CGROUP_DEVICE = 15
_ATTACH_CGROUP_DEVICE = 6
# Beside the programs of others, such as systemd's. All of them have to agree.
_ALLOW_MULTI = 2
_MAX_PROGRAMS = 64
_ATTR_BYTES = 128
_INFO_BYTES = 256

_libc = ctypes.CDLL(None, use_errno=True)


class Handle:
    """A descriptor that is closed with the last reference to this."""

    def __init__(self, descriptor: int) -> None:
        self.number = descriptor

    def __del__(self) -> None:
        os.close(self.number)


def create_map(name: str, *, key_bytes: int, value_bytes: int, entries: int) -> Handle:
    """A hash table in the kernel. This and everything below raises OSError where the kernel refuses."""
    attr = struct.pack(
        "<5I8x4x16s", _MAP_TYPE_HASH, key_bytes, value_bytes, entries, _NO_PREALLOC, name.encode()
    )
    return Handle(_bpf(_MAP_CREATE, attr))


def update(table: Handle, key: bytes, value: bytes) -> None:
    _with_key(_MAP_UPDATE, table, key, ctypes.create_string_buffer(value, len(value)))


def lookup(table: Handle, key: bytes, *, value_bytes: int) -> bytes | None:
    value = ctypes.create_string_buffer(value_bytes)
    found = _with_key(_MAP_LOOKUP, table, key, value)
    return value.raw if found else None


def delete(table: Handle, key: bytes) -> None:
    """Does nothing where there is no such key."""
    _with_key(_MAP_DELETE, table, key, None)


def keys(table: Handle, *, key_bytes: int) -> Iterator[bytes]:
    """For one reader who is also the only writer."""
    key: bytes | None = None
    while True:
        following = ctypes.create_string_buffer(key_bytes)
        if not _with_key(_MAP_NEXT_KEY, table, key, following):
            return
        key = following.raw
        yield key


def load_device_program(code: bytes, *, name: str) -> Handle:
    """Has the kernel check the program and keep it for as long as somebody refers to it."""
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    attr = struct.pack(
        "<IIQQ4x4x8x4x4x16s4xI",
        _PROG_TYPE_CGROUP_DEVICE,
        len(code) // 8,
        ctypes.addressof(instructions),
        ctypes.addressof(licence),
        name.encode(),
        _ATTACH_CGROUP_DEVICE,
    )
    return Handle(_bpf(_PROG_LOAD, attr))


def attach(program: Handle, group: str) -> None:
    with _Folder(group) as folder:
        attr = struct.pack("<4I", folder, program.number, _ATTACH_CGROUP_DEVICE, _ALLOW_MULTI)
        _bpf(_PROG_ATTACH, attr)


def detach(program: Handle, group: str) -> None:
    with _Folder(group) as folder:
        _bpf(_PROG_DETACH, struct.pack("<3I", folder, program.number, _ATTACH_CGROUP_DEVICE))


def attached(group: str) -> tuple[int, ...]:
    """The ids of all device programs on this control group itself."""
    ids = (ctypes.c_uint32 * _MAX_PROGRAMS)()
    with _Folder(group) as folder:
        attr = struct.pack(
            "<4IQI", folder, _ATTACH_CGROUP_DEVICE, 0, 0, ctypes.addressof(ids), _MAX_PROGRAMS
        )
        answer = ctypes.create_string_buffer(attr, _ATTR_BYTES)
        _call(_PROG_QUERY, answer)
    (count,) = struct.unpack_from("<I", answer.raw, 24)
    return tuple(ids[:count])


def program_of(identity: int) -> Handle:
    return Handle(_bpf(_PROG_FD_BY_ID, struct.pack("<I", identity)))


def map_of(identity: int) -> Handle:
    return Handle(_bpf(_MAP_FD_BY_ID, struct.pack("<I", identity)))


def describe(program: Handle) -> tuple[int, str, int | None]:
    """Its id, its name, and the id of its first map."""
    maps = (ctypes.c_uint32 * 1)()
    # nr_map_ids at 52 says how many there is room for; struct bpf_prog_info only ever grows.
    asked = struct.pack("<52xIQ", 1, ctypes.addressof(maps))
    info = ctypes.create_string_buffer(asked, _INFO_BYTES)
    _bpf(_OBJ_INFO, struct.pack("<IIQ", program.number, _INFO_BYTES, ctypes.addressof(info)))
    (identity,) = struct.unpack_from("<I", info.raw, 4)
    (count,) = struct.unpack_from("<I", info.raw, 52)
    (name,) = struct.unpack_from("16s", info.raw, 64)
    return identity, name.rstrip(b"\0").decode(errors="replace"), maps[0] if count else None


class _Folder:
    """The descriptor of a control group's folder, for the length of a call."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> int:
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _with_key(
    command: int, table: Handle, key: bytes | None, value: "ctypes.Array[ctypes.c_char] | None"
) -> bool:
    """False where there is no such key."""
    place = ctypes.create_string_buffer(key, len(key)) if key is not None else None
    attr = struct.pack("<I4xQQQ", table.number, _address(place), _address(value), 0)
    try:
        _bpf(command, attr)
    except FileNotFoundError:
        return False
    return True


def _address(buffer: "ctypes.Array[ctypes.c_char] | None") -> int:
    return ctypes.addressof(buffer) if buffer is not None else 0


def _bpf(command: int, attr: bytes) -> int:
    return _call(command, ctypes.create_string_buffer(attr, _ATTR_BYTES))


def _call(command: int, attr: "ctypes.Array[ctypes.c_char]") -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"bpf is not known on {platform.machine()}")
    result = _libc.syscall(number, command, ctypes.byref(attr), len(attr))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(result)
