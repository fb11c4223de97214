"""Reports of hosts: once each, told in the audit trail and to the people whom they concern."""

from datetime import timedelta

import pytest

from reservations.models import AuditEntry, Device, Host, Notice, Report
from reservations.services import enforcement
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, SECOND, registered, report

pytestmark = pytest.mark.django_db


@pytest.fixture
def host():
    return registered("gpu1")[0]


@pytest.fixture
def device(host):
    return build.device(host, uuid="GPU-a", index=0)


@pytest.fixture
def alice(host):
    return person("alice", host)


@pytest.fixture
def bob(host):
    return person("bob", host)


@pytest.fixture
def admin():
    return build.operator("admin")


def person(name, host):
    made = build.user(name)
    build.account(made, host)
    return made


def record(host, *reports, at=NOON):
    return enforcement.record(host, reports, received_at=at)


def told(user):
    return [notice.text for notice in Notice.objects.filter(user=user).order_by("id")]


def test_a_report_becomes_an_audit_entry_with_the_host_as_actor(host, device, alice):
    booking = build.booking(device, owner=alice)
    done = report("opened", device="GPU-a", booking=booking.pk, unix_name="alice", latency_s=0.02)
    assert record(host, done).stored == (done.id,)
    entry = AuditEntry.objects.get(booking=booking)
    assert (entry.verb, entry.actor, entry.actor_label) == ("opened", None, "host gpu1")
    assert (entry.at, entry.host, entry.device) == (NOON, host, device)
    assert entry.after == {"unix_name": "alice", "latency_s": 0.02, "device": "GPU-a"}


def test_a_report_is_stored_once_however_often_it_comes(host, device, alice, admin):
    done = report("intruder", device="GPU-a", unix_name="alice")
    for _ in range(3):
        assert record(host, done, done).stored == (done.id,)
    assert Report.objects.count() == 1
    assert AuditEntry.objects.filter(verb="intruder").count() == 1
    assert (len(told(alice)), len(told(admin))) == (1, 1)


def test_two_hosts_may_use_the_same_report_id(host):
    other = registered("gpu2")[0]
    same = report("agent_started")
    assert record(host, same).stored == record(other, same).stored == (same.id,)
    assert Report.objects.count() == 2


def test_bookings_and_devices_of_other_hosts_are_rejected_and_the_rest_is_kept(host, device, alice):
    mine = build.booking(device, owner=alice)
    theirs = build.booking(build.device(uuid="GPU-theirs"), owner=alice)
    answer = record(
        host,
        report("opened", id="mine-0001", booking=mine.pk, device="GPU-a"),
        report("opened", id="theirs-01", booking=theirs.pk, device="GPU-a"),
        report("opened", id="nobodys-1", booking=2**63 - 1),
        report("opened", id="theirs-02", device="GPU-theirs"),
    )
    assert answer.stored == ("mine-0001",)
    assert {one.id: one.code for one in answer.rejected} == {
        "theirs-01": "booking_elsewhere",
        "nobodys-1": "booking_elsewhere",
        "theirs-02": "device_elsewhere",
    }
    assert not AuditEntry.objects.filter(booking=theirs).exists()


def test_a_cancelled_booking_may_still_be_reported_on(host, device, alice):
    booking = build.booking(device, owner=alice, state="cancelled")
    assert record(host, report("closed", booking=booking.pk)).rejected == ()


def test_a_device_that_nobody_knows_yet_loses_no_report(host):
    answer = record(host, report("device_lost", device="GPU-new"))
    assert len(answer.stored) == 1
    assert Report.objects.get().body["device"] == "GPU-new"


def test_a_clock_that_runs_ahead_reports_nothing_from_the_future(host):
    record(host, report("agent_started", at=NOON + HOUR))
    assert AuditEntry.objects.get(verb="agent_started").at == NOON


def test_nonsense_times_are_rejected_instead_of_failing(host):
    from datetime import UTC, datetime, timezone

    first_day = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14)))
    last_day = datetime(9999, 12, 31, 23, tzinfo=timezone(-timedelta(hours=12)))
    early, late = report(at=first_day), report(at=last_day.replace(tzinfo=UTC))
    answer = record(host, early, late, report(at=last_day))
    assert [one.code for one in answer.rejected] == ["too_old"]
    assert len(answer.stored) == 2


@pytest.mark.parametrize("named", [False, True], ids=["no booking named", "holder's booking named"])
def test_an_intruder_on_a_booked_device_is_told_to_all_three(
    named, host, device, alice, bob, admin
):
    booking = build.booking(device, owner=alice)
    facts = {"booking": booking.pk} if named else {}
    record(host, report("intruder", device="GPU-a", unix_name="bob", **facts))
    assert told(bob) == [
        "You use Test 80GB · 0 on gpu1 without a booking. Book it, or end your processes there. "
        "Otherwise they will be stopped."
    ]
    assert told(alice) == [
        "bob uses Test 80GB · 0 on gpu1, which is booked by you. They have been told and will be "
        "stopped if they stay."
    ]
    assert told(admin) == ["bob uses Test 80GB · 0 on gpu1 without a booking."]


def test_a_site_that_hides_names_tells_the_holder_no_name(host, device, alice, bob, settings):
    settings.SHOW_OWNERS = False
    build.booking(device, owner=alice)
    record(host, report("intruder", device="GPU-a", unix_name="bob"))
    assert told(alice)[0].startswith("Somebody uses Test 80GB · 0 on gpu1")


def test_a_host_that_only_observes_tells_operators_alone(host, device, bob, admin):
    Host.objects.update(mode="observe")
    host.refresh_from_db()
    record(host, report("intruder", device="GPU-a", unix_name="bob"))
    assert (told(bob), len(told(admin))) == ([], 1)


def test_what_waited_for_hours_in_a_spool_is_told_to_operators_and_in_the_trail_alone(
    host, device, bob, admin
):
    late = report("intruder", device="GPU-a", unix_name="bob")
    record(host, late, at=NOON + 2 * HOUR)
    assert (told(bob), len(told(admin))) == ([], 1)
    assert AuditEntry.objects.get(verb="intruder").at == NOON


def test_a_host_that_only_warns_threatens_nobody(host, device, bob):
    Host.objects.update(mode="warn")
    host.refresh_from_db()
    record(host, report("intruder", device="GPU-a", unix_name="bob"))
    assert "stopped" not in told(bob)[0]


def test_the_story_of_an_end_reaches_its_person_step_by_step(host, device, alice):
    booking = build.booking(device, owner=alice)
    facts = {"device": "GPU-a", "booking": booking.pk, "unix_name": "alice"}
    for kind in ("closed", "overrun", "signalled", "killed", "gone"):
        record(host, report(kind, **facts), at=NOON + HOUR)
    verbs = AuditEntry.objects.filter(booking=booking).order_by("id").values_list("verb", flat=True)
    assert list(verbs) == ["closed", "overrun", "signalled", "killed", "gone"]
    assert [text.split(".")[0] for text in told(alice)] == [
        "Your booking of Test 80GB · 0 on gpu1 has ended, and processes of yours are still on it",
        "Your processes on Test 80GB · 0 on gpu1 have been asked to end (SIGTERM)",
        "Your processes on Test 80GB · 0 on gpu1 have been ended by force",
    ]


def test_a_process_that_cannot_be_ended_marks_the_device_and_warns_whoever_comes_next(
    host, device, alice, bob, admin
):
    booking = build.booking(device, owner=alice)
    build.booking(device, owner=bob, start=NOON + HOUR)
    stuck = report(
        "stuck", device="GPU-a", booking=booking.pk, unix_name="alice", text="waits for NFS",
        at=NOON + HOUR,
    )  # fmt: skip
    record(host, stuck, at=NOON + HOUR + SECOND)
    device.refresh_from_db()
    assert (device.state, device.state_since) == ("needs_attention", NOON + HOUR)
    assert "which you have booked" in told(bob)[0]
    assert "waits for NFS" in told(admin)[0]
    assert "cannot be ended" in told(alice)[0]


def test_somebody_whose_turn_is_far_off_is_not_bothered(host, device, alice, bob):
    build.booking(device, owner=bob, start=NOON + 5 * HOUR)
    record(host, report("stuck", device="GPU-a", unix_name="alice"))
    assert told(bob) == []


def test_a_name_unknown_on_the_host_is_told_with_its_reason(host, device, alice, admin):
    booking = build.booking(device, owner=alice)
    facts = {"device": "GPU-a", "booking": booking.pk, "unix_name": "alice"}
    record(host, report("no_account", text="uid 1009 is not the expected 1001", **facts))
    assert "uid 1009 is not the expected 1001" in told(alice)[0]
    assert "alice has no usable account on gpu1. uid 1009" in told(admin)[0]


def test_a_lost_device_is_marked_and_its_holder_told(host, device, alice, admin):
    build.booking(device, owner=alice)
    record(host, report("device_lost", device="GPU-a"))
    device.refresh_from_db()
    assert device.state == Device.State.LOST
    assert (len(told(alice)), len(told(admin))) == (1, 1)
    record(host, report("device_back", device="GPU-a"))
    device.refresh_from_db()
    assert device.state == Device.State.OK


def test_every_kind_of_report_is_accepted_with_and_without_its_facts(host, device, alice, admin):
    from typing import get_args

    from reservations.core.wire import ReportKind

    booking = build.booking(device, owner=alice)
    for kind in get_args(ReportKind):
        facts = {"device": "GPU-a", "booking": booking.pk, "unix_name": "alice", "text": "why {x}"}
        for fields in ({}, facts, {"unix_name": "nobody", "device": "GPU-a"}):
            assert record(host, report(kind, **fields)).rejected == ()
