"""The database itself refuses two holding allocations of one device at one instant."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from reservations.models import Allocation
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def test_periods_that_only_touch_are_both_kept():
    device = build.device()
    build.booking(device, start=NOON)
    build.booking(device, start=NOON + HOUR)
    assert Allocation.objects.count() == 2


def test_an_insert_that_overlaps_is_refused():
    device = build.device()
    build.booking(device, start=NOON)
    with pytest.raises(IntegrityError), transaction.atomic():
        build.booking(device, start=NOON + HOUR - timedelta(microseconds=1))
