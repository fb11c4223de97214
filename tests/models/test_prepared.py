"""What is compiled once answers as the ORM does, on both databases, whatever is bound."""

from datetime import timedelta

import pytest
from django.db.models import BigIntegerField, DateTimeField

from reservations.models import Allocation, AuditEntry, Device, User
from reservations.prepared import Bind, OneOf, Prepared, columns, insert, instance
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_a_statement_binds_anew_at_each_call():
    devices = [build.device(), build.device()]
    for number, device in enumerate(devices):
        build.booking(device, start=NOON + number * HOUR)
    begun = Prepared(
        lambda: (
            Allocation.objects.filter(start__lte=Bind("now", DateTimeField()))
            .order_by("start")
            .values_list("device_id", "start", "holds")
        )
    )
    assert begun.rows(now=NOON) == [(devices[0].pk, NOON, True)]
    assert begun.rows(now=NOON + HOUR)[1:] == [(devices[1].pk, NOON + HOUR, True)]
    assert begun.rows(now=NOON - HOUR) == []


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_may_have_another_length_at_each_call(count):
    devices = [build.device() for _ in range(3)]
    named = Prepared(lambda: Device.objects.filter(OneOf("uuid", "uuids")).order_by("pk"))
    found = named.rows(uuids=[one.uuid for one in devices[:count]])
    assert [instance(Device, row) for row in found] == devices[:count]


def test_an_instance_has_every_column_of_its_row():
    person = build.user("李娜", display_name="Li Na 🚢", expires_at=NOON)
    one = Prepared(lambda: User.objects.filter(pk=Bind("pk", BigIntegerField())))
    read = instance(User, one.rows(pk=person.pk)[0])
    known = User.objects.get(pk=person.pk)
    assert {name: getattr(read, name) for name in columns(User)} == {
        name: getattr(known, name) for name in columns(User)
    }
    assert not read._state.adding


def test_new_rows_get_their_keys_and_read_back_as_written():
    rows = [
        AuditEntry(at=NOON, actor_label="berth", verb=f"said {n}", after={"n": n, "名": None})
        for n in range(3)
    ]
    insert(rows)
    assert len({row.pk for row in rows}) == 3
    for row in rows:
        kept = AuditEntry.objects.get(pk=row.pk)
        assert (kept.at, kept.verb, kept.after) == (row.at, row.verb, row.after)
        assert (kept.before, kept.actor, kept.once_key) == (None, None, None)
