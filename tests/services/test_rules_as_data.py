"""Rules come from a table: what a new site starts with, and rows that nobody could obey."""

from datetime import timedelta
from importlib import import_module

import pytest
from django.apps import apps
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

from reservations import registry
from reservations.core.errors import Refused
from reservations.models import Rule, Site
from reservations.selectors import standing
from reservations.services import bookings
from reservations.services.bookings import Change, Wish
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
NOW = NOON - HOUR
migration = import_module("reservations.migrations.0003_default_rules")


@pytest.fixture(autouse=True)
def no_rules():
    Rule.objects.all().delete()


def test_a_new_site_allows_seven_days_thirty_days_ahead_and_eight_devices_at_once():
    migration.add(apps, None)
    rows = {row.kind: (row.limit, row.match, row.scope, row.action) for row in Rule.objects.all()}
    ordinary = {"kind": "normal"}
    assert rows == {
        "max_length": (168, ordinary, "user", "deny"),
        "horizon": (30, ordinary, "user", "deny"),
        "max_devices": (8, ordinary, "user", "deny"),
    }
    migration.remove(apps, None)
    assert not Rule.objects.exists()


def test_the_rules_that_a_new_site_has_can_all_be_obeyed():
    migration.add(apps, None)
    assert [registry.fault_of(row) for row in Rule.objects.all()] == [None] * 3
    call_command("check", databases=["default"])


@pytest.mark.parametrize("fields", [{"kind": "max_lenght"}, {"match": {"colour": "red"}}])
def test_a_rule_that_nobody_could_obey_stops_the_start(fields):
    Rule.objects.create(**{"name": "odd", "kind": "max_length", "limit": 1, **fields})
    with pytest.raises(CommandError, match="rule odd"):
        call_command("check", databases=["default"])


def test_and_is_never_passed_over_in_silence():
    Rule.objects.create(name="odd", kind="max_lenght", limit=1)
    with pytest.raises(ImproperlyConfigured, match="unknown kind 'max_lenght'"):
        standing.active_rules(now=NOW)


@pytest.mark.parametrize(
    ("path", "complaint"),
    [
        ("reservations.core.rules.nowhere.Rule", "No module named"),
        ("reservations.core.period.Period", "lacks kind"),
        ("reservations.core.rules.max_length.MaxLength", "there is a max_length already"),
    ],
)
def test_a_kind_that_cannot_be_loaded_stops_the_start(settings, path, complaint):
    settings.RULE_KINDS = ["reservations.core.rules.max_length.MaxLength", path]
    registry.rule_kinds.cache_clear()
    try:
        with pytest.raises(CommandError, match=complaint):
            call_command("check")
    finally:
        registry.rule_kinds.cache_clear()


def test_an_operators_own_act_is_the_approval_that_a_rule_asks_for():
    build.rule("max_length", 0, action="needs_approval")
    operator = build.operator()
    build.account(operator)
    wish = Wish(devices=(build.device().uuid,), start=NOON, duration=HOUR)
    assert bookings.book(wish, actor=build.actor(operator), now=NOW).state == "confirmed"


def test_more_than_was_approved_needs_an_operator():
    build.rule("max_length", 1, action="needs_approval")
    alice, operator = build.person(), build.operator()
    booking = build.booking(build.device(), owner=alice)
    change = Change(end=NOON + 2 * HOUR)
    with pytest.raises(Refused):
        bookings.move(booking.pk, change, actor=build.actor(alice), now=NOW)
    assert bookings.move(booking.pk, change, actor=build.actor(operator), now=NOW).revision == 2


def test_limits_left_count_what_is_held_at_this_instant():
    build.rule("max_devices", 8, name="devices-at-once", match={"kind": "normal"})
    alice = build.person()
    build.booking(build.device(), build.device(), owner=alice)
    during = standing.limits_left(alice, now=NOON)
    assert [(one.rule, one.used, one.limit) for one in during] == [("devices-at-once", 2, 8)]
    assert standing.limits_left(alice, now=NOON + HOUR)[0].used == 0


def test_a_new_site_has_the_row_under_whose_lock_everybody_is_counted():
    Site.objects.all().delete()
    migration = import_module("reservations.migrations.0006_site_row")
    for _ in range(2):
        migration.add(apps, None)
    assert len(Site.objects.get().plan_epoch) == 32
