"""What root types at a host's terminal, and what is to be removed when Berth goes."""

from datetime import timedelta

import pytest

from reservations.core.wire import DeviceInfo
from workers.host.commands import modprobe
from workers.host.commands.words import WrongCall, duration, find_device

DEVICES = tuple(
    DeviceInfo(uuid=uuid, vendor="nvidia", index=index, model="A100", parent=parent)
    for index, uuid, parent in (
        (0, "GPU-aaaa1111", None),
        (1, "GPU-aaab2222", None),
        (0, "MIG-cccc3333", "GPU-aaab2222"),
    )
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("90m", timedelta(minutes=90)),
        ("4h", timedelta(hours=4)),
        ("1d12h", timedelta(days=1, hours=12)),
        ("45s", timedelta(seconds=45)),
        ("0", timedelta(0)),
    ],
)
def test_durations_are_written_as_people_write_them(text, expected):
    assert duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "4", "h", "-1h", "1h2d", "1.5h", "4 h", "9999d", "soon", "²h", "٣h"]
)
def test_anything_else_is_no_duration(text):
    with pytest.raises(ValueError, match=r"expected a duration|longer than a year"):
        duration(text)


@pytest.mark.parametrize(
    ("wanted", "uuid"),
    [
        ("0", "GPU-aaaa1111"),
        ("1", "GPU-aaab2222"),
        ("GPU-aaaa1111", "GPU-aaaa1111"),
        ("gpu-aaab", "GPU-aaab2222"),
        ("aaaa", "GPU-aaaa1111"),
        ("MIG-", "MIG-cccc3333"),
    ],
)
def test_a_device_is_found_by_index_or_by_how_its_uuid_begins(wanted, uuid):
    assert find_device(DEVICES, wanted).uuid == uuid


@pytest.mark.parametrize("wanted", ["aaa", "GPU-", "7", "zzz"])
def test_what_fits_none_or_several_names_the_devices_that_there_are(wanted):
    with pytest.raises(WrongCall) as refused:
        find_device(DEVICES, wanted)

    assert all(device.uuid in str(refused.value) for device in DEVICES)


def test_a_host_without_devices_says_so():
    with pytest.raises(WrongCall, match="there is no device 0; the devices of this host: none"):
        find_device((), "0")


def test_the_lines_of_modprobe_that_close_the_nodes_are_named_with_their_files(tmp_path):
    (tmp_path / "berth.conf").write_text(
        "# options nvidia NVreg_DeviceFileGID=1\n"
        "options nvidia NVreg_DeviceFileUID=0 NVreg_DeviceFileGID=990 NVreg_DeviceFileMode=0660\n"
    )
    (tmp_path / "other.conf").write_text("options nvidia NVreg_PreserveVideoMemoryAllocations=1\n")

    said = "\n".join(modprobe.advice(tmp_path))

    assert f"{tmp_path}/berth.conf: options nvidia NVreg_DeviceFileUID=0" in said
    assert "other.conf" not in said
    assert "# options" not in said


def test_where_no_line_was_written_there_is_nothing_to_remove(tmp_path):
    assert modprobe.advice(tmp_path) == []


@pytest.mark.parametrize("wanted", ["²", "٠", "-0", "1e0", "", "\udcff"])
def test_what_only_looks_like_a_number_names_no_device(wanted):
    with pytest.raises(WrongCall):
        find_device(DEVICES, wanted)
