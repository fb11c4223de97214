"""What scripts read: names, units and punctuation of nvidia-smi."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.public_host import closed, device, host
from workers.host import smi
from workers.host.smi import Format, WrongQuestion

BOTH = host(device(0), closed(1))


def test_fields_come_with_their_units_in_heading_and_value():
    asked = "index,name,memory.used,memory.free,utilization.gpu,power.draw,temperature.gpu"
    assert smi.devices(host(device(0)), asked, Format()).splitlines() == [
        "index, name, memory.used [MiB], memory.free [MiB], utilization.gpu [%], power.draw [W], "
        "temperature.gpu",
        "0, NVIDIA A100-SXM4-80GB, 30720 MiB, 50176 MiB, 93 %, 301.23 W, 65",
    ]


def test_without_units_the_heading_still_has_them():
    text = smi.devices(host(device(0)), "memory.total,power.limit", Format(units=False))
    assert text == "memory.total [MiB], power.limit [W]\n81920, 400.00\n"


def test_without_header_there_are_values_alone():
    assert smi.devices(host(device(0)), "index,uuid", Format(header=False)) == "0, GPU-0\n"


def test_what_is_not_known_is_said_so_without_a_unit():
    asked = "index,memory.used,memory.free,utilization.gpu,power.draw,pci.bus_id,berth.booked_by"
    line = smi.devices(BOTH, asked, Format(header=False)).splitlines()[1]
    assert line == "1" + 6 * ", [N/A]"


def test_nobody_is_not_the_same_as_unknown():
    free = device(0, held_by=(), booked_by=(), booked_until=None)
    asked = "berth.held_by,berth.booked_by,berth.booked_until"
    assert smi.devices(host(free), asked, Format(header=False)) == ", , [N/A]\n"


def test_other_names_of_a_field_are_understood_as_by_nvidia_smi():
    assert smi.devices(host(), "gpu_uuid, clocks.sm", Format()) == "uuid, clocks.current.sm [MHz]\n"


def test_only_whole_gpus_are_listed():
    listed = smi.devices(host(device(0), device(1, kind="mig")), "index", Format(header=False))
    assert listed == "0\n"


@pytest.mark.parametrize("wanted", ["", "nonsense", "index,", "index,\x1b[2Jname"])
def test_an_unknown_field_is_named_with_those_that_are_known(wanted):
    with pytest.raises(WrongQuestion, match=r"known are: index, name.*") as refused:
        smi.devices(BOTH, wanted, Format())
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("words", ["", "xml", "noheader", "csv,noheaders"])
def test_an_unknown_format_is_refused(words):
    with pytest.raises(WrongQuestion, match="csv"):
        smi.read_format(words)


def test_formats():
    assert smi.read_format("csv") == Format()
    assert smi.read_format("csv,noheader,nounits") == Format(header=False, units=False)


@settings(deadline=None)
@given(model=st.text(max_size=40), user=st.text(max_size=20))
def test_whatever_a_device_is_called_there_are_as_many_values_as_fields(model, user):
    named = device(0, model=model, booked_by=(user,))
    text = smi.devices(host(named), "index,name,berth.booked_by", Format(header=False))
    (row,) = csv.reader(io.StringIO(text), skipinitialspace=True)
    assert len(row) == 3
    assert text.rstrip("\n").isprintable()


def test_processes_of_every_device():
    busy = host(device(0), device(1, kind="mig"), closed(2))
    text = smi.processes(busy, "pid,used_memory,gpu_uuid,name,berth.user", Format())
    assert text.splitlines() == [
        "pid, used_gpu_memory [MiB], gpu_uuid, process_name, berth.user",
        "4711, 29696 MiB, GPU-0, [N/A], alice",
        "4711, 29696 MiB, GPU-1, [N/A], alice",
    ]
