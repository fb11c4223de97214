"""The table of `berth-host top`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.host.public_host import closed, device, host
from workers.host.public import PublicProcess
from workers.host.top import page


@pytest.fixture(autouse=True)
def in_utc(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_table_that_fits_80_columns():
    lines = page(host(device(0), closed(1)), age_s=2, width=80)
    assert lines == [
        "gpu-01  mode enforce  https://berth.example",
        "",
        "GPU MODEL               UTIL          MEMORY STATE        WHO          UNTIL",
        "  0 A100-SXM4-80GB      93 %   30.0/80.0 GiB in use       alice        Mon 14:00",
        "  1 A100-SXM4-80GB         ?         ?/? GiB no data      -            -",
        "",
        "GPU     PID    MEMORY USER",
        "  0    4711  29.0 GiB alice",
        "  1       ?",
    ]


def test_a_wide_terminal_shows_more():
    text = "\n".join(page(host(device(0)), age_s=2, width=200))
    for shown in ("TEMP", "65 C", "POWER", "301 W", "NEXT", "UUID", "GPU-0", "A100-SXM4-80GB"):
        assert shown in text


def test_who_is_on_a_device_besides_its_booking_is_in_brackets():
    text = "\n".join(page(host(device(0, held_by=("alice", "bob"))), age_s=2, width=80))
    assert "alice (bob)" in text


def test_old_data_is_said_to_be_old():
    fresh, old = (page(host(device(0)), age_s=age, width=80) for age in (30, 40))
    assert old[1] == "data is 40 s old: the agent does not run"
    assert not any("agent" in line for line in fresh)


def test_an_idle_host():
    assert page(host(device(0, processes=())), age_s=0, width=80)[-1] == "nobody computes"


@settings(deadline=None)
@given(
    name=st.text(max_size=60),
    width=st.integers(1, 250),
    memory=st.none() | st.integers(0, 2**62),
)
def test_no_line_is_wider_than_the_terminal_or_commands_it(name, width, memory):
    named = device(
        0,
        model=name,
        booked_by=(name, "x" * 200),
        memory_used_bytes=memory,
        processes=(PublicProcess(pid=2**22, user=name, memory_bytes=memory),),
    )
    for line in page(host(named, host=name), age_s=99, width=width):
        assert len(line) <= max(width, 60)
        assert line.isprintable()
