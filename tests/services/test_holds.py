"""Holding hosts: who may, what their agents are told, and that every hold ends."""

from datetime import timedelta

import pytest

from reservations.core.errors import Forbidden, Invalid, NotFound
from reservations.models import AuditEntry
from reservations.selectors import holds as holds_read
from reservations.services import holds, plans
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, registered

pytestmark = pytest.mark.django_db


@pytest.fixture
def host():
    return registered("gpu1")[0]


@pytest.fixture
def admin():
    return build.operator("admin")


def hold(actor, *names, reason="new driver", until=NOON + HOUR, now=NOON):
    return holds.hold(names or None, reason=reason, until=until, actor=build.actor(actor), now=now)


def told(host, now=NOON):
    return plans.plan_for(host, now=now).settings.hold


def test_a_held_host_is_told_why_and_until_when(host, admin):
    before = plans.plan_for(host, now=NOON).etag
    assert hold(admin, "gpu1") == ["gpu1"]
    assert (told(host).reason, told(host).until) == ("new driver", NOON + HOUR)
    assert plans.plan_for(host, now=NOON).etag != before


def test_other_hosts_are_not_held(host, admin):
    other = registered("gpu2")[0]
    hold(admin, "gpu1")
    assert told(other) is None


def test_all_hosts_can_be_held_and_resumed_at_once(host, admin):
    registered("gpu2")
    assert hold(admin) == ["gpu1", "gpu2"]
    assert set(holds_read.rows(now=NOON)) == {"gpu1", "gpu2"}
    assert holds.resume(None, actor=build.actor(admin), now=NOON) == ["gpu1", "gpu2"]
    assert holds_read.rows(now=NOON) == {}
    assert told(host) is None


def test_a_hold_is_over_at_its_end_whether_or_not_somebody_resumes(host, admin):
    hold(admin, "gpu1")
    assert told(host, now=NOON + HOUR - timedelta(seconds=1)) is not None
    assert told(host, now=NOON + HOUR) is None
    assert holds.resume(None, actor=build.actor(admin), now=NOON + HOUR) == []


def test_holding_again_gives_the_hold_another_end_and_keeps_its_beginning(host, admin):
    hold(admin, "gpu1")
    hold(admin, "gpu1", reason="takes longer", until=NOON + 3 * HOUR, now=NOON + HOUR / 2)
    (row,) = holds_read.in_force(now=NOON + HOUR)
    assert (row.since, row.until, row.reason) == (NOON, NOON + 3 * HOUR, "takes longer")


def test_a_new_hold_after_an_old_one_begins_anew(host, admin):
    hold(admin, "gpu1")
    hold(admin, "gpu1", until=NOON + 3 * HOUR, now=NOON + 2 * HOUR)
    assert holds_read.in_force(now=NOON + 2 * HOUR).get().since == NOON + 2 * HOUR


def test_the_trail_tells_who_held_why_and_until_when_and_who_resumed(host, admin):
    hold(admin, "gpu1")
    holds.resume(["gpu1"], actor=build.actor(admin), now=NOON)
    held, resumed = AuditEntry.objects.filter(verb__in=("host_held", "host_resumed")).order_by("id")
    assert (held.actor, held.host, held.why) == (admin, host, "new driver")
    assert held.after["until"] == "2027-03-01T13:00:00Z"
    assert (resumed.actor, resumed.before["reason"]) == (admin, "new driver")


@pytest.mark.parametrize("who", ["owner", "teammate", "stranger"])
def test_only_operators_hold_and_resume(host, admin, who):
    person = build.user(who)
    with pytest.raises(Forbidden):
        hold(person, "gpu1")
    hold(admin, "gpu1")
    with pytest.raises(Forbidden):
        holds.resume(["gpu1"], actor=build.actor(person), now=NOON)
    assert told(host) is not None


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"reason": "  "}, "reason"),
        ({"reason": "x" * 201}, "reason"),
        ({"until": NOON}, "until"),
        ({"until": NOON + timedelta(days=7, seconds=1)}, "until"),
    ],
)
def test_a_hold_has_a_reason_and_an_end_within_a_week(host, admin, wrong, field):
    with pytest.raises(Invalid) as refused:
        hold(admin, "gpu1", **wrong)
    assert list(refused.value.errors) == [field]
    assert told(host) is None


def test_an_unknown_host_is_named_and_none_is_held(host, admin):
    with pytest.raises(NotFound, match="gpu9"):
        hold(admin, "gpu1", "gpu9")
    assert told(host) is None
