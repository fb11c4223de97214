"""The verdict on a device: what the chip says."""

from datetime import timedelta

import pytest

from reservations.core.usage import FRESH, Condition, Held, judge
from reservations.core.wire import ProcessUse, Sample
from tests.build import NOON

MINUTE = timedelta(minutes=1)
ALICES = Held(owner="Alice", start=NOON, unix_names=frozenset({"alice", "anna"}))


def process(name: str | None, uid: int = 1000) -> ProcessUse:
    return ProcessUse(pid=7, uid=uid, unix_name=name)


def verdict(*processes: ProcessUse, held=None, at=NOON, now=None, state="ok", **fields):
    sample = Sample(uuid="GPU-1", at=at, **{"processes": processes, **fields})
    return judge(Condition(state, NOON), sample, held=held, now=now or at)


def test_free_when_nobody_holds_or_uses_it():
    assert verdict().code == "free"


@pytest.mark.parametrize("held", [None, ALICES])
def test_what_works_for_nobody_is_neither_free_nor_idle_and_blamed_on_nobody(held):
    """Also while the driver lists a process that is gone, which nobody can name."""
    for listed in ((), (ProcessUse(pid=7, memory_bytes=2**35),)):
        found = verdict(*listed, held=held, haunted=True, utilization_percent=100)
        assert (found.code, found.who) == ("needs_attention", ())


def test_in_use_by_its_holder_or_anybody_of_the_booking():
    for name in ("alice", "anna"):
        assert verdict(process(name), held=ALICES).code == "in_use"


def test_used_without_a_booking_names_the_people():
    found = verdict(process("bob"), process("bob"), process("carol"))
    assert (found.code, found.who) == ("unbooked_use", ("bob", "carol"))
    assert found.text == "Used without a booking by bob, carol"


def test_used_by_somebody_else_than_the_holder():
    found = verdict(process("alice"), process("bob"), held=ALICES)
    assert (found.code, found.who) == ("foreign_use", ("bob",))
    assert found.text == "Used by bob, booked by Alice"


def test_booked_and_nobody_there_is_idle_since_the_start():
    found = verdict(held=ALICES, at=NOON + 12 * MINUTE)
    assert (found.code, found.since) == ("idle", NOON)
    assert found.text == "Booked by Alice, idle 12 min"


def test_memory_held_without_compute_has_its_own_words():
    found = verdict(
        process("alice"),
        held=ALICES,
        at=NOON + 60 * MINUTE,
        last_busy=NOON + 20 * MINUTE,
        utilization_percent=0,
    )
    assert (found.code, found.since) == ("idle", NOON + 20 * MINUTE)
    assert found.text == "Booked by Alice, memory held, 0 % compute for 40 min"


def test_a_part_whose_compute_is_unknown_is_in_use_while_anybody_of_the_booking_is_on_it():
    found = verdict(process("alice"), held=ALICES, at=NOON + 60 * MINUTE, utilization_percent=None)
    assert found.code == "in_use"


def test_idleness_before_the_booking_is_not_the_holders():
    found = verdict(process("alice"), held=ALICES, at=NOON + MINUTE, last_busy=NOON - 600 * MINUTE)
    assert found.code == "in_use"


def test_unknown_is_neither_free_nor_a_violation():
    """Before the first sample, after the last one, and where processes cannot be read."""
    for held in (None, ALICES):
        assert judge(Condition(), None, held=held, now=NOON).code == "no_data"
        assert verdict(held=held, now=NOON + FRESH + MINUTE).code == "no_data"
        assert verdict(held=held, health="unknown").code == "no_data"
        assert verdict(held=held, processes=None).code == "no_data"


def test_a_process_that_cannot_be_named_accuses_nobody():
    assert verdict(process(None), held=ALICES).code == "in_use"
    found = verdict(process(None))
    assert (found.code, found.who, found.text) == ("unbooked_use", (), "Used without a booking")


def test_the_systems_own_processes_are_nobodys_use():
    assert verdict(process("root", uid=0)).code == "free"


@pytest.mark.parametrize("state", ["lost", "needs_attention"])
def test_a_broken_device_says_so_before_anything_else(state):
    found = verdict(process("bob"), held=ALICES, state=state)
    assert (found.code, found.since) == (state, NOON)


def test_a_device_that_its_host_calls_lost_is_lost():
    assert verdict(health="lost").code == "lost"
