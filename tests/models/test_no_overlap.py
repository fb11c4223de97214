"""The database itself refuses two holding allocations of one device at one instant, on every path."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, models, transaction
from django.db.models import F, ProtectedError

from reservations.models import Allocation, Booking
from tests import build
from tests.build import NOON

HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


@pytest.fixture
def device(db):
    return build.device()


@pytest.fixture
def taken(device):
    """The allocation that holds the device at noon for an hour."""
    return build.booking(device).allocations.get()


def another(device, start=NOON, end=None, **fields):
    """An unsaved row of another booking."""
    booking = build.booking(build.device(), start=start, end=end or start + HOUR)
    return Allocation(
        booking=booking, device=device, start=start, end=end or start + HOUR, **fields
    )


def refused():
    return pytest.raises(IntegrityError, match="allocation_no_overlap")


@pytest.mark.parametrize("start", [NOON - HOUR, NOON + HOUR])
def test_periods_that_only_touch_are_both_kept(device, taken, start):
    another(device, start=start).save()
    assert device.allocations.count() == 2


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (NOON - HOUR, NOON + TICK),
        (NOON + HOUR - TICK, NOON + 2 * HOUR),
        (NOON, NOON + HOUR),
        (NOON + HOUR / 4, NOON + HOUR / 2),
        (NOON - HOUR, NOON + 2 * HOUR),
    ],
)
def test_an_insert_that_overlaps_is_refused(device, taken, start, end):
    row = another(device, start=start, end=end)
    with refused(), transaction.atomic():
        row.save()


def test_other_devices_are_not_concerned(device, taken):
    another(build.device()).save()


def test_rows_that_do_not_hold_are_not_concerned(device, taken):
    another(device, holds=False).save()


def test_bulk_create_is_refused_as_a_whole(device, taken):
    rows = [another(device, start=NOON + 5 * HOUR), another(device)]
    with refused(), transaction.atomic():
        Allocation.objects.bulk_create(rows)
    assert device.allocations.count() == 1


def test_bulk_create_of_rows_that_overlap_each_other_is_refused(device):
    rows = [another(device), another(device)]
    with refused(), transaction.atomic():
        Allocation.objects.bulk_create(rows)


def test_an_update_of_the_time_is_refused(device, taken):
    later = another(device, start=NOON + HOUR)
    later.save()
    with refused(), transaction.atomic():
        Allocation.objects.filter(pk=later.pk).update(start=NOON + HOUR / 2)


def test_an_update_by_an_expression_is_refused(device, taken):
    another(device, start=NOON + HOUR).save()
    with refused(), transaction.atomic():
        Allocation.objects.filter(pk=taken.pk).update(end=F("end") + TICK)


def test_an_update_of_the_device_is_refused(device, taken):
    elsewhere = another(build.device())
    elsewhere.save()
    with refused(), transaction.atomic():
        Allocation.objects.filter(pk=elsewhere.pk).update(device=device)


def test_letting_a_row_hold_again_is_refused(device, taken):
    row = another(device, holds=False)
    row.save()
    with refused(), transaction.atomic():
        Allocation.objects.filter(pk=row.pk).update(holds=True)


def test_bulk_update_is_refused(device, taken):
    row = another(device, start=NOON + HOUR)
    row.save()
    row.start = NOON
    with refused(), transaction.atomic():
        Allocation.objects.bulk_update([row], ["start"])


def test_an_upsert_is_refused(device, taken):
    row = another(device, start=NOON + HOUR)
    row.save()
    clash = Allocation(
        pk=row.pk, booking=row.booking, device=device, start=NOON, end=NOON + HOUR, holds=True
    )
    with refused(), transaction.atomic():
        Allocation.objects.bulk_create(
            [clash],
            update_conflicts=True,
            unique_fields=["id"],
            update_fields=["start", "end"],
        )


def test_an_insert_that_would_ignore_conflicts_writes_nothing_either(device, taken):
    row = another(device)
    try:
        with transaction.atomic():
            Allocation.objects.bulk_create([row], ignore_conflicts=True)
    except IntegrityError:
        pass  # SQLite says so; PostgreSQL leaves the row out, as it was asked to.
    assert device.allocations.get() == taken


def test_a_row_does_not_stand_in_its_own_way(device, taken):
    Allocation.objects.filter(pk=taken.pk).update(start=NOON + HOUR / 2, end=NOON + 2 * HOUR)
    taken.save()


def test_raw_sql_is_refused_like_everything_else(device, taken):
    row = another(device, holds=False)
    row.save()
    with refused(), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE reservations_allocation SET holds = TRUE WHERE id = %s", [row.pk])


def test_validation_asks_nothing_because_a_look_without_locks_proves_nothing(device, taken):
    another(device).validate_constraints()


@pytest.mark.parametrize("model", [Allocation, Booking])
def test_the_end_comes_after_the_start(device, taken, model):
    with pytest.raises(IntegrityError), transaction.atomic():
        model.objects.update(end=F("start"))


def test_a_device_with_bookings_cannot_be_deleted(device, taken):
    with pytest.raises(ProtectedError):
        device.delete()
    assert Booking.objects.filter(pk=taken.booking_id).exists()


@pytest.mark.django_db(transaction=True)
def test_the_guard_survives_a_change_of_the_table():
    # SQLite makes a new table, copies the rows and drops the old one together with its triggers.
    device = build.device()
    build.booking(device)
    old = Allocation._meta.get_field("holds")
    new = models.BooleanField(default=True, db_index=True)
    new.set_attributes_from_name("holds")
    new.model = Allocation
    with connection.schema_editor() as editor:
        editor.alter_field(Allocation, old, new)
    try:
        with refused(), transaction.atomic():
            build.booking(device)
    finally:
        with connection.schema_editor() as editor:
            editor.alter_field(Allocation, new, old)
    with refused(), transaction.atomic():
        build.booking(device)
