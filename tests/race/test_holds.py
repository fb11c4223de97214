"""Operators who hold and resume at the same moment, on a real database."""

from datetime import timedelta

import pytest

from reservations.models import AuditEntry
from reservations.services import holds
from tests import build
from tests.build import NOON
from tests.hosts import registered
from tests.race.test_bookings import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.db_race]


def test_a_hold_is_resumed_once():
    registered("gpu1")
    actor = build.actor(build.operator())
    for _ in range(5):
        holds.hold(None, reason="x", until=NOON + timedelta(hours=1), actor=actor, now=NOON)
        together(*[lambda: holds.resume(None, actor=actor, now=NOON)] * 4)
    assert AuditEntry.objects.filter(verb="host_resumed").count() == 5
