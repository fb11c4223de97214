"""What each host is told."""

from datetime import UTC, datetime, timedelta

import pytest

from reservations.core.errors import Invalid
from reservations.core.wire import MAX_GRANTS, plan_etag
from reservations.models import Allocation, Booking, Device, Host
from reservations.selectors import machines
from reservations.services import bookings, plans
from reservations.services.actors import BERTH
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, SECOND

pytestmark = pytest.mark.django_db


@pytest.fixture
def host():
    return build.host("gpu1", mode="enforce")


@pytest.fixture
def alice(host):
    alice = build.user("alice")
    build.account(alice, host, expected_uid=1001)
    return alice


def grants(host, now=NOON):
    return plans.plan_for(host, now=now).grants


def test_a_booking_is_told_to_its_host_and_to_no_other(host, alice):
    booking = build.booking(build.device(host, uuid="GPU-a"), owner=alice)
    (grant,) = grants(host)
    assert (grant.booking, grant.device, grant.unix_name) == (booking.pk, "GPU-a", "alice")
    assert (grant.expected_uid, grant.start, grant.end) == (1001, NOON, NOON + HOUR)
    assert grants(build.host()) == ()


def test_what_was_cancelled_around_its_start_is_named_for_a_day_and_no_etag_changes(host, alice):
    device = build.device(host)
    given_up = build.booking(device, owner=alice)
    build.booking(build.device(build.host()), owner=alice, state=Booking.State.CANCELLED)
    build.booking(device, owner=alice, state=Booking.State.PENDING)
    before = plans.plan_for(host, now=NOON)
    assert [grant.booking for grant in before.grants] == [given_up.pk]
    assert before.cancelled == ()

    bookings.cancel(given_up.pk, actor=BERTH, now=NOON - SECOND)

    for now in (NOON - MINUTE, NOON, NOON + 23 * HOUR):
        plan = plans.plan_for(host, now=now)
        assert plan.grants == ()
        assert plan.cancelled == (given_up.pk,)
        assert plan.etag != before.etag
    for now in (NOON - 2 * MINUTE, NOON + 24 * HOUR):
        quiet = plans.plan_for(host, now=now)
        assert quiet.cancelled == ()
        assert quiet.etag == plan.etag


def test_people_and_teammates_get_grants_of_their_own(host, alice):
    bob, carol, dora = (build.user(name) for name in ("bob", "carol", "dora"))
    for person in (bob, carol, dora):
        build.account(person)
    team = build.team(alice, carol)
    booking = build.booking(build.device(host), owner=alice, team=team)
    booking.people.add(bob)
    assert {grant.unix_name for grant in grants(host)} == {"alice", "bob", "carol"}


def test_no_account_on_the_host_is_no_grant_whatever_the_username(host):
    build.booking(build.device(host), owner=build.user("root"))
    assert grants(host) == ()


def test_a_site_may_say_that_usernames_are_unix_names(host, settings):
    settings.UNIX_NAMES = "username"
    for name in ("erika", "no unix name", "-rf"):
        build.booking(build.device(host), owner=build.user(name))
    assert [grant.unix_name for grant in grants(host)] == ["erika"]


def test_an_account_of_the_host_goes_before_one_everywhere_and_its_name_is_taken(host, alice):
    build.account(alice, unix_name="alice-everywhere")
    other = build.user("mallory")
    build.account(other, unix_name="alice")
    for owner in (alice, other):
        build.booking(build.device(host), owner=owner)
    assert [(g.unix_name, g.expected_uid) for g in grants(host)] == [("alice", 1001)]


def test_a_username_never_takes_somebody_elses_account(host, alice, settings):
    settings.UNIX_NAMES = "username"
    alice.accounts.update(unix_name="mallory")
    build.booking(build.device(host), owner=build.user("mallory"))
    assert grants(host) == ()


def test_cancelled_pending_and_maintenance_bookings_grant_nothing(host, alice):
    for fields in ({"state": "cancelled"}, {"state": "pending"}, {"kind": "maintenance"}):
        build.booking(build.device(host), owner=alice, **fields)
    assert grants(host) == ()


def test_a_released_booking_stays_in_the_plan_with_its_new_end(host, alice):
    booking = build.booking(build.device(host), owner=alice, hours=4)
    released = NOON + HOUR
    Booking.objects.filter(pk=booking.pk).update(end=released, released_at=released)
    Allocation.objects.filter(booking=booking).update(end=released)
    (grant,) = grants(host, now=released + MINUTE)
    assert grant.end == released


def test_a_moved_booking_is_told_as_it_is_now(host, alice):
    old, new = build.device(host), build.device(host)
    booking = build.booking(old, owner=alice)
    Allocation.objects.filter(booking=booking).update(
        device=new, start=NOON + HOUR, end=NOON + 2 * HOUR
    )
    (grant,) = grants(host)
    assert (grant.device, grant.start) == (new.uuid, NOON + HOUR)


def test_a_booking_made_30_days_ahead_is_granted_on_its_day(host, alice):
    start = NOON + timedelta(days=30)
    booking = build.booking(build.device(host), owner=alice, start=start)
    for now in (NOON, start - SECOND, start, start + MINUTE, start + HOUR):
        (grant,) = grants(host, now=now)
        assert (grant.booking, grant.start, grant.end) == (booking.pk, start, start + HOUR)


def test_somebody_deactivated_gets_no_running_grant_but_ended_ones_are_remembered(host, alice):
    build.booking(build.device(host), owner=alice, start=NOON - 2 * HOUR)
    build.booking(build.device(host), owner=alice)
    alice.is_active = False
    alice.save()
    assert [grant.end for grant in grants(host)] == [NOON - HOUR]


def test_a_guest_who_has_expired_gets_no_grant(host, alice):
    alice.expires_at = NOON
    alice.save()
    build.booking(build.device(host), owner=alice)
    assert grants(host) == ()


def test_more_than_5000_grants_are_cut_and_the_plan_says_from_when_on(host, alice):
    device = build.device(host)
    booking = build.booking(device, owner=alice, end=NOON + MINUTE)
    Allocation.objects.bulk_create(
        Allocation(
            booking=booking,
            device=device,
            start=NOON + number * MINUTE,
            end=NOON + (number + 1) * MINUTE,
        )
        for number in range(1, MAX_GRANTS + 10)
    )
    plan = plans.plan_for(host, now=NOON)
    assert len(plan.grants) == MAX_GRANTS
    assert plan.complete_until == NOON + MAX_GRANTS * MINUTE


def test_settings_come_from_the_host_and_its_managed_devices(host):
    Host.objects.filter(pk=host.pk).update(settings={"grace_s": 5, "unbooked_use": "allow"})
    build.device(host, uuid="GPU-b")
    build.device(host, uuid="GPU-a")
    build.device(host, managed_by="slurm")
    build.device(host, state=Device.State.RETIRED)
    settings = plans.plan_for(host, now=NOON).settings
    assert (settings.mode, settings.grace_s, settings.unbooked_use) == ("enforce", 5, "allow")
    assert settings.managed == ("GPU-a", "GPU-b")


@pytest.mark.parametrize(
    "overrides",
    [
        {"grace": 5},
        {"grace_s": "long"},
        {"grace_s": -1},
        {"grace_s": 1e300},
        {"intruder_grace_s": 1e10},
        {"adopt_h": 9_999_999_999},
        {"kill_budget": -1},
        {"sample_s": 0},
        {"unbooked_use": "maybe"},
        {"mode": "warn"},
    ],
)
def test_settings_that_no_host_could_act_on_are_refused(overrides):
    with pytest.raises(Invalid):
        plans.checked_settings(overrides)


def test_as_of_is_the_databases_clock_and_server_time_is_ours(host):
    """A second behind it: a change that looked at the clock may take that long to be committed."""
    before = machines.database_now()
    plan = plans.plan_for(host, now=NOON)
    assert before <= plan.as_of + SECOND <= machines.database_now()
    assert abs(datetime.now(UTC) - plan.as_of) < MINUTE
    assert plan.server_time == NOON


def test_the_epoch_is_made_once_and_changes_on_purpose_only(host, alice):
    first = plans.plan_for(host, now=NOON)
    assert plans.plan_for(host, now=NOON + HOUR).epoch == first.epoch
    plans.new_plan_epoch()
    renewed = plans.plan_for(host, now=NOON)
    assert renewed.epoch != first.epoch
    assert renewed.etag != first.etag


def test_the_etag_changes_with_a_booking_and_not_with_time(host, alice):
    device = build.device(host)
    empty = plans.plan_for(host, now=NOON).etag
    build.booking(device, owner=alice)
    plan = plans.plan_for(host, now=NOON)
    assert plan.etag != empty
    assert plan.etag == plans.plan_for(host, now=NOON + MINUTE).etag
    assert plan.etag == plan_etag(plan.epoch, plan.grants, plan.settings)


def test_a_plan_takes_the_same_number_of_queries_for_one_booking_and_for_twenty(
    host, alice, django_assert_max_num_queries
):
    for hour in range(20):
        build.booking(build.device(host), owner=alice, start=NOON + hour * HOUR)
    plans.plan_epoch()
    with django_assert_max_num_queries(10):
        assert len(grants(host)) == 20


def test_a_host_knows_which_bookings_are_kept_and_whether_the_site_shows_owners(
    host, alice, settings
):
    build.booking(build.device(host), owner=alice, keep_if_free=True)
    settings.SHOW_OWNERS = False
    plan = plans.plan_for(host, now=NOON)
    assert [grant.keep_if_free for grant in plan.grants] == [True]
    assert plan.settings.show_owners is False


def test_who_is_shown_is_no_setting_of_a_single_host():
    with pytest.raises(Invalid):
        plans.checked_settings({"show_owners": False})
