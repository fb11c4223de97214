"""Any sequence of verbs and passing time, compared with a small model of what bookings are.

The model says for each step whether it must succeed; afterwards the tables must say what the model
says. So there is never an overlap, history never changes, and a promise is only made by book, move
and extend.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import combinations

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from reservations.core.errors import DomainError
from reservations.models import Allocation, AuditEntry, Booking, Rule
from reservations.services import bookings
from reservations.services.bookings import Change, Wish
from tests import build
from tests.build import NOON

GRID = timedelta(minutes=5)
LATE = timedelta(seconds=5)


@dataclass(frozen=True)
class Slot:
    """What the model knows of one booking."""

    devices: frozenset[str]
    start: datetime
    end: datetime
    planned_end: datetime
    state: str = "confirmed"
    released: bool = False
    revision: int = 1

    def phase(self, now):
        if self.state == "cancelled":
            return "cancelled"
        if now < self.start:
            return "upcoming"
        return "active" if now < self.end else "ended"


steps = st.integers(0, 24)
lengths = st.integers(1, 12)


class Bookings(RuleBasedStateMachine):
    """Three devices, one person, a clock that only goes on."""

    made = Bundle("made")

    def __init__(self):
        super().__init__()
        self.block = transaction.atomic()
        self.block._from_testcase = True  # lets durable transactions run inside, as tests do
        self.block.__enter__()
        Rule.objects.all().delete()
        self.alice = build.person()
        host = build.host()
        self.uuids = [build.device(host).uuid for _ in range(3)]
        self.actor = build.actor(self.alice)
        self.now = NOON
        self.model: dict[int, Slot] = {}

    def teardown(self):
        transaction.set_rollback(True)
        self.block.__exit__(None, None, None)

    def at(self, step):
        return NOON + step * GRID

    def is_free(self, devices, start, end, but=None):
        return not any(
            one.state == "confirmed"
            and one.devices & devices
            and one.start < end
            and start < one.end
            for key, one in self.model.items()
            if key != but
        )

    def attempt(self, verb, *, possible):
        """The booking if it had to be possible, and it was; else None, and it was refused."""
        booking, refusal = None, None
        try:
            booking = verb()
        except DomainError as error:
            refusal = error
        assert (refusal is None) == possible, refusal
        return booking

    @rule(
        target=made,
        devices=st.sets(st.integers(0, 2), min_size=1),
        step=steps,
        length=lengths,
    )
    def book(self, devices, step, length):
        uuids = frozenset(self.uuids[one] for one in devices)
        start, end = self.at(step), self.at(step + length)
        # A start just passed means now; one that passed earlier is refused.
        begins = self.now if self.now - timedelta(minutes=2) <= start <= self.now else start
        possible = begins >= self.now and end > self.now and self.is_free(uuids, begins, end)
        wish = Wish(devices=tuple(uuids), start=start, end=end)
        booking = self.attempt(
            lambda: bookings.book(wish, actor=self.actor, now=self.now), possible=possible
        )
        if booking is None:
            return multiple()
        self.model[booking.pk] = Slot(uuids, begins, end, end)
        return booking.pk

    @rule(key=made, step=steps, length=lengths)
    def move(self, key, step, length):
        slot, start, end = self.model[key], self.at(step), self.at(step + length)
        begins = self.now if self.now - timedelta(minutes=2) <= start <= self.now else start
        if slot.phase(self.now) == "active":
            same = abs(start - slot.start) < timedelta(seconds=1)
            begins = slot.start
            possible = same and end > self.now and slot.end - self.now >= LATE
        else:
            possible = slot.phase(self.now) == "upcoming" and begins >= self.now and end > self.now
            if start == slot.start:
                begins = start
        possible = possible and end > begins and self.is_free(slot.devices, begins, end, but=key)
        moved = self.attempt(
            lambda: bookings.move(
                key, Change(start=start, end=end), actor=self.actor, now=self.now
            ),
            possible=possible,
        )
        if moved:
            self.model[key] = replace(
                slot, start=begins, end=end, planned_end=end, revision=slot.revision + 1
            )

    @rule(key=made, length=lengths)
    def extend(self, key, length):
        slot = self.model[key]
        phase = slot.phase(self.now)
        end = slot.end + length * GRID
        possible = (
            phase in {"upcoming", "active"}
            and not (phase == "active" and slot.end - self.now < LATE)
            and self.is_free(slot.devices, slot.start, end, but=key)
        )
        extended = self.attempt(
            lambda: bookings.extend(key, duration=length * GRID, actor=self.actor, now=self.now),
            possible=possible,
        )
        if extended:
            self.model[key] = replace(slot, end=end, planned_end=end, revision=slot.revision + 1)

    @rule(key=made)
    def give_up(self, key):
        slot = self.model[key]
        phase = slot.phase(self.now)
        again = phase == "cancelled" or (phase == "ended" and slot.released)
        possible = again or phase in {"upcoming", "active"}
        booking = self.attempt(
            lambda: bookings.release(key, actor=self.actor, now=self.now),
            possible=possible,
        )
        if booking is None or again:
            return
        if phase == "active" and slot.start < self.now:
            changed = replace(slot, end=self.now, released=True)
        else:
            changed = replace(slot, state="cancelled")
        self.model[key] = replace(changed, revision=slot.revision + 1)

    @rule(seconds=st.sampled_from([1, 60, 119, 296, 299, 300, 301, 900, 1800]))
    def time_passes(self, seconds):
        self.now += timedelta(seconds=seconds)

    @invariant()
    def the_tables_say_what_the_model_says(self):
        rows = {
            one.pk: (one.start, one.end, one.planned_end, one.state, one.revision)
            for one in Booking.objects.all()
        }
        assert rows == {
            key: (one.start, one.end, one.planned_end, one.state, one.revision)
            for key, one in self.model.items()
        }
        held = {}
        for one in Allocation.objects.filter(holds=True).select_related("device"):
            held.setdefault(one.booking_id, set()).add((one.device.uuid, one.start, one.end))
        assert held == {
            key: {(device, one.start, one.end) for device in one.devices}
            for key, one in self.model.items()
            if one.state == "confirmed"
        }

    @invariant()
    def no_two_holding_rows_of_a_device_overlap(self):
        rows = Allocation.objects.filter(holds=True)
        for one, other in combinations(rows, 2):
            if one.device_id == other.device_id:
                assert one.end <= other.start or other.end <= one.start

    @invariant()
    def every_change_left_one_entry_in_the_trail(self):
        assert AuditEntry.objects.count() == sum(one.revision for one in self.model.values())


@pytest.mark.django_db
def test_bookings_do_what_their_model_says():
    run_state_machine_as_test(
        Bookings,
        settings=settings(
            max_examples=25,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
