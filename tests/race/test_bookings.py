"""People who take the same slot at the same moment, on a real database, with committed transactions.

Two guards stand in the way of a double booking: the locks and the constraint. Each is taken away once.
"""

import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.db import connection, connections

from reservations.core.errors import DomainError, SlotTaken
from reservations.models import Allocation, Site, User
from reservations.selectors import busy, standing
from reservations.services import bookings, locks, placing, writes
from reservations.services.bookings import Change, Wish
from tests import build
from tests.build import NOON

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.db_race]
HOUR = timedelta(hours=1)
NOW = NOON - HOUR


def together(*attempts: Callable[[], object]) -> list[str]:
    """Start all at one moment; what became of each, in order: "ok" or the name of its error."""
    line = threading.Barrier(len(attempts))

    def run(attempt):
        try:
            line.wait(10)
            attempt()
        except DomainError as error:
            return type(error).__name__
        finally:
            connections.close_all()
        return "ok"

    with ThreadPoolExecutor(len(attempts)) as pool:
        return list(pool.map(run, attempts))


def booking_of(device, person, **fields):
    wish = Wish(devices=(device.uuid,), **{"start": NOON, "duration": HOUR, **fields})
    return lambda: bookings.book(wish, actor=build.actor(person), now=NOW)


def wait_for_each_other(monkeypatch, module, name: str) -> None:
    """Let two transactions both finish this look before either may write."""
    both_looked = threading.Barrier(2)
    look = getattr(module, name)

    def look_then_wait(*args, **kwargs):
        rows = look(*args, **kwargs)
        # Broken means that a lock kept the other one out; then there is nobody to wait for.
        with contextlib.suppress(threading.BrokenBarrierError):
            both_looked.wait(1)
        return rows

    monkeypatch.setattr(module, name, look_then_wait)


@pytest.fixture
def without_locks(monkeypatch) -> None:
    """PostgreSQL reads the devices without locking them; SQLite, whose one writer is the lock, commits
    every statement by itself.
    """
    if connection.vendor == "sqlite":
        no_transaction = SimpleNamespace(atomic=lambda durable: contextlib.nullcontext())
        monkeypatch.setattr(writes, "transaction", no_transaction)
    else:
        monkeypatch.setattr(locks, "devices", placing.read)
        monkeypatch.setattr(locks, "devices_named", placing.read_named)


@pytest.fixture
def without_constraint() -> Iterator[None]:
    constraint = next(
        one for one in Allocation._meta.constraints if one.name == "allocation_no_overlap"
    )
    with connection.schema_editor() as editor:
        editor.execute(constraint.remove_sql(Allocation, editor))
    yield
    Allocation.objects.all().delete()
    with connection.schema_editor() as editor:
        # SQLite's triggers are created when the editor closes.
        if statement := constraint.create_sql(Allocation, editor):
            editor.execute(statement)


def race_for_one_slot(monkeypatch) -> list[str]:
    device, people = build.device(), [build.person(), build.person()]
    wait_for_each_other(monkeypatch, busy, "busy_periods")
    return sorted(together(*(booking_of(device, person) for person in people)))


@pytest.mark.usefixtures("without_locks", "without_constraint")
def test_the_race_is_real_when_both_guards_are_off(monkeypatch):
    # If this fails, the tests below prove nothing.
    assert race_for_one_slot(monkeypatch) == ["ok", "ok"]


@pytest.mark.usefixtures("without_constraint")
def test_the_locks_alone_are_enough(monkeypatch):
    assert race_for_one_slot(monkeypatch) == ["SlotTaken", "ok"]


@pytest.mark.usefixtures("without_locks")
def test_the_constraint_alone_is_enough(monkeypatch):
    assert race_for_one_slot(monkeypatch) == ["SlotTaken", "ok"]
    assert Allocation.objects.count() == 1


def race_with_two_tabs(monkeypatch) -> list[str]:
    build.rule("max_devices", 1, name="devices-at-once")
    alice, devices = build.person(), [build.device(), build.device()]
    wait_for_each_other(monkeypatch, standing, "standing")
    return sorted(together(*(booking_of(device, alice) for device in devices)))


def test_a_quota_cannot_be_beaten_with_two_tabs(monkeypatch):
    assert race_with_two_tabs(monkeypatch) == ["Refused", "ok"]


@pytest.mark.usefixtures("without_locks")
def test_without_the_owners_lock_it_could_be(monkeypatch):
    monkeypatch.setattr(locks, "people", lambda *, owner, **_: User.objects.get(pk=owner))
    assert race_with_two_tabs(monkeypatch) == ["ok", "ok"]


@pytest.mark.parametrize("scope", ["team", "site"])
def test_nor_the_quota_of_many_by_two_of_them(monkeypatch, scope):
    build.rule("max_devices", 1, name="shared", scope=scope)
    Site.objects.get_or_create(defaults={"plan_epoch": "tests"})
    people = [build.person(), build.person()]
    team = build.team(*people)
    wait_for_each_other(monkeypatch, standing, "standing")
    outcome = together(*(booking_of(build.device(), person, team=team.name) for person in people))
    assert sorted(outcome) == ["Refused", "ok"]


def test_two_who_swap_their_devices_at_once_cannot_both_and_do_not_deadlock():
    first, second = build.device(), build.device()
    alice, bob = build.person(), build.person()
    hers, his = build.booking(first, owner=alice), build.booking(second, owner=bob)

    def move(booking, device):
        change = Change(devices=(device.uuid,))
        return lambda: bookings.move(booking.pk, change, actor=build.actor(booking.owner), now=NOW)

    assert together(move(hers, second), move(his, first)) == ["SlotTaken", "SlotTaken"]


def test_two_moves_into_one_gap_let_one_in():
    device = build.device()
    people = [build.person(), build.person()]
    theirs = [
        build.booking(device, owner=one, start=NOON + (1 + number) * HOUR)
        for number, one in enumerate(people)
    ]

    def move(booking):
        change = Change(start=NOON, end=NOON + HOUR)
        return lambda: bookings.move(booking.pk, change, actor=build.actor(booking.owner), now=NOW)

    assert sorted(together(*(move(one) for one in theirs))) == ["SlotTaken", "ok"]


def test_a_release_and_an_extension_of_one_booking_come_one_after_the_other():
    alice, device = build.person(), build.device()
    booking = build.booking(device, owner=alice)
    during = NOON + HOUR / 2

    def release():
        bookings.release(booking.pk, actor=build.actor(alice), now=during)

    def extend():
        bookings.extend(booking.pk, actor=build.actor(alice), now=during, duration=HOUR)

    outcome = together(release, extend)
    booking.refresh_from_db()
    row = Allocation.objects.get(booking=booking)
    assert outcome[0] == "ok"
    assert outcome[1] in {"ok", "NotPossibleNow", "Busy"}
    assert (booking.end, row.end) == (during, during)


def test_of_two_pending_bookings_of_one_slot_approved_at_once_one_is_confirmed():
    device, operator = build.device(), build.operator()
    waiting = [build.booking(device, owner=build.person(), state="pending") for _ in range(2)]

    def approve(booking):
        return lambda: bookings.approve(booking.pk, actor=build.actor(operator), now=NOW)

    assert sorted(together(*(approve(one) for one in waiting))) == ["SlotTaken", "ok"]


def test_twelve_at_once_on_one_hot_slot_end_in_one_booking_and_eleven_clear_answers():
    devices = [build.device() for _ in range(3)]
    people = [build.person() for _ in range(12)]
    for hour in range(4):
        wish = Wish(
            devices=tuple(one.uuid for one in devices),
            start=NOON + hour * HOUR,
            duration=HOUR,
        )
        outcome = together(
            *(
                lambda person=person, wish=wish: bookings.book(
                    wish, actor=build.actor(person), now=NOW
                )
                for person in people
            )
        )
        assert Counter(outcome) == {"ok": 1, "SlotTaken": 11}
    assert Allocation.objects.count() == 12


def test_devices_named_in_any_order_do_not_deadlock():
    devices = [build.device() for _ in range(4)]
    uuids = [one.uuid for one in devices]

    def attempt(number):
        order = uuids[number % 4 :] + uuids[: number % 4]
        wish = Wish(devices=tuple(order[:3]), start=NOON, duration=HOUR)
        person = build.person()
        return lambda: bookings.book(wish, actor=build.actor(person), now=NOW)

    outcome = Counter(together(*(attempt(number) for number in range(8))))
    assert outcome == {"ok": 1, "SlotTaken": 7}


def test_eight_who_only_count_get_eight_different_devices():
    host = build.host()
    for _ in range(8):
        build.device(host)
    people = [build.person() for _ in range(8)]
    wish = Wish(count=1, start=NOON, duration=HOUR)
    outcome = together(
        *(
            lambda person=person: bookings.book(wish, actor=build.actor(person), now=NOW)
            for person in people
        )
    )
    assert outcome == ["ok"] * 8
    assert Allocation.objects.values("device").distinct().count() == 8


def test_eight_people_on_twenty_slots_make_twenty_bookings():
    device, people = build.device(), [build.person() for _ in range(8)]

    def take_all(person):
        def attempt():
            for hour in range(20):
                with contextlib.suppress(SlotTaken):
                    booking_of(device, person, start=NOON + hour * HOUR)()

        return attempt

    assert together(*(take_all(person) for person in people)) == ["ok"] * 8
    assert Allocation.objects.filter(holds=True).count() == 20
