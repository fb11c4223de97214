"""Booking: what is written, what is refused, and in which words."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from reservations.core.errors import Forbidden, Invalid, Refused, SlotTaken
from reservations.models import Allocation, AuditEntry, Booking, Device, Notice
from reservations.services import bookings
from reservations.services.bookings import DeviceFilter, Wish
from tests import build
from tests.build import NOON

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
NOW = NOON - HOUR


def book(wish, by=None, now=NOW):
    return bookings.book(wish, actor=build.actor(by or build.person()), now=now)


def of(*devices, **fields):
    """A wish for these devices at noon for an hour."""
    times = {"start": NOON, "duration": HOUR}
    return Wish(**{"devices": tuple(one.uuid for one in devices), **times, **fields})


def devices_of(booking):
    return {one.device for one in booking.allocations.all()}


class TestWhatIsWritten:
    def test_all_devices_are_held_for_the_whole_period(self):
        devices = [build.device(), build.device()]
        booking = book(of(*devices))
        held = Allocation.objects.filter(booking=booking)
        assert {(one.device, one.start, one.end, one.holds) for one in held} == {
            (device, NOON, NOON + HOUR, True) for device in devices
        }
        assert booking.planned_end == NOON + HOUR
        assert booking.pinned

    def test_the_audit_entry_says_who_did_what_and_through_which_door(self):
        alice, device = build.person("alice"), build.device()
        booking = book(of(device), by=alice)
        entry = AuditEntry.objects.get(booking=booking)
        assert (entry.verb, entry.actor, entry.actor_label) == ("booked", alice, "alice")
        assert entry.after["devices"] == [device.uuid]
        assert booking.source == "web"

    def test_nothing_is_written_when_it_is_refused(self):
        free, taken = build.device(), build.device()
        build.booking(taken)
        with pytest.raises(SlotTaken):
            book(of(free, taken))
        assert not Allocation.objects.filter(device=free).exists()
        assert Booking.objects.count() == 1
        assert not AuditEntry.objects.exists()

    def test_people_and_team_are_kept_and_the_owner_is_not_named_twice(self):
        alice, bob = build.person("alice"), build.person("bob")
        team = build.team(alice)
        booking = book(of(build.device(), people=("bob", "alice"), team=team.name), by=alice)
        again = Booking.objects.get(pk=booking.pk)
        assert list(again.people.all()) == [bob]
        assert again.team == team

    def test_any_language_is_welcome_in_a_purpose(self):
        purpose = "训练 🚀 مرحبا"
        assert book(of(build.device(), purpose=purpose)).purpose == purpose


class TestWhen:
    def test_a_start_up_to_two_minutes_back_is_now(self):
        booking = book(
            of(build.device(), start=NOON - 2 * MINUTE, end=NOON + HOUR, duration=None),
            now=NOON + 0 * MINUTE,
        )
        assert booking.start == NOON

    def test_now_may_lie_off_the_grid(self):
        now = NOON + timedelta(minutes=3, seconds=17, microseconds=5)
        booking = book(of(build.device(), start=now), now=now)
        assert booking.start == now
        assert booking.end == NOON + HOUR + 5 * MINUTE

    def test_a_start_further_back_is_refused(self):
        with pytest.raises(Invalid) as invalid:
            book(of(build.device(), start=NOON), now=NOON + 2 * MINUTE + timedelta(seconds=1))
        assert "has passed" in invalid.value.errors["start"][0]

    def test_an_end_must_lie_in_the_future(self):
        with pytest.raises(Invalid) as invalid:
            book(
                of(build.device(), start=NOON, end=NOON + MINUTE, duration=None), now=NOON + MINUTE
            )
        assert list(invalid.value.errors) == ["end"]

    def test_times_off_the_grid_are_refused_with_the_nearest_on_it(self):
        with pytest.raises(Invalid) as invalid:
            book(of(build.device(), start=NOON + 3 * MINUTE))
        assert invalid.value.errors == {
            "start": [
                "Times are multiples of 5 minutes; the nearest are "
                "2027-03-01T12:00:00Z and 2027-03-01T12:05:00Z."
            ]
        }

    def test_an_end_made_from_a_duration_rounds_up_to_the_grid(self):
        booking = book(of(build.device(), duration=61 * MINUTE))
        assert booking.end == NOON + 65 * MINUTE

    def test_an_offset_is_only_another_name_for_the_instant(self):
        shanghai = timezone(timedelta(hours=8))
        booking = book(of(build.device(), start=NOON.astimezone(shanghai)))
        assert Booking.objects.get(pk=booking.pk).start == NOON

    @pytest.mark.parametrize(
        "fields",
        [
            {"start": NOON.replace(tzinfo=None)},
            {"end": NOON - HOUR, "duration": None},
            {"end": NOON, "duration": None},
            {"end": NOON + HOUR},
            {"duration": None},
            {"duration": timedelta(0)},
            {"duration": -HOUR},
            {"duration": timedelta.max},
            {"duration": timedelta(days=3_661)},
            {"start": datetime.max.replace(tzinfo=UTC)},
            {"start": datetime.min.replace(tzinfo=UTC)},
            {"start": datetime(9999, 12, 31, 23, 55, tzinfo=timezone(timedelta(hours=-12)))},
            {"end": datetime(9999, 12, 31, tzinfo=UTC), "duration": None},
        ],
    )
    def test_times_that_make_no_sense_are_invalid(self, fields):
        with pytest.raises(Invalid):
            book(of(build.device(), **fields))

    def test_ten_years_are_refused_by_the_rules_in_words(self):
        build.rule("max_length", 168, name="length")
        with pytest.raises(Refused) as refused:
            book(of(build.device(), duration=timedelta(days=3_650)))
        assert "3650 days" in str(refused.value)


class TestWhereNoStartIsNamed:
    def test_it_starts_now_if_that_is_free(self):
        booking = book(of(build.device(), start=None))
        assert (booking.start, booking.end) == (NOW, NOW + HOUR)

    def test_else_at_the_earliest_possible_time_on_the_grid(self):
        device = build.device()
        build.booking(device, start=NOW, end=NOON + MINUTE)
        booking = book(of(device, start=None))
        assert (booking.start, booking.end) == (NOON + 5 * MINUTE, NOON + 65 * MINUTE)

    def test_the_earliest_fits_between_two_bookings_only_if_it_is_free_throughout(self):
        device = build.device()
        build.booking(device, start=NOW, end=NOON)
        build.booking(device, start=NOON + 30 * MINUTE)
        assert book(of(device, start=None)).start == NOON + 90 * MINUTE

    def test_with_a_fixed_end_it_begins_as_early_as_it_can(self):
        device = build.device()
        build.booking(device, start=NOW, end=NOON)
        booking = book(of(device, start=None, end=NOON + HOUR, duration=None))
        assert (booking.start, booking.end) == (NOON, NOON + HOUR)

    def test_with_a_fixed_end_that_is_taken_there_is_nothing(self):
        device = build.device()
        build.booking(device, start=NOON)
        build.booking(device, start=NOW)
        with pytest.raises(SlotTaken):
            book(of(device, start=None, end=NOON + HOUR, duration=None))


class TestWhereDevicesAreCounted:
    def wish(self, count=1, **wanted):
        return Wish(count=count, filter=DeviceFilter(**wanted), start=NOON, duration=HOUR)

    def test_they_are_chosen_on_one_host_and_are_not_pinned(self):
        host = build.host()
        devices = {build.device(host), build.device(host)}
        build.device()
        booking = book(self.wish(2))
        assert devices_of(booking) == devices
        assert not booking.pinned

    def test_they_may_be_spread_over_hosts_if_asked(self):
        devices = {build.device(), build.device()}
        assert devices_of(book(self.wish(2, same_host=False))) == devices

    def test_the_tightest_gap_is_used_up_first(self):
        host = build.host()
        wide, tight = build.device(host), build.device(host)
        build.booking(tight, start=NOON + HOUR)
        assert devices_of(book(self.wish())) == {tight}
        assert wide not in devices_of(Booking.objects.last())

    @pytest.mark.parametrize(
        "wanted",
        [
            {"model": "Good"},
            {"host": "good"},
            {"min_memory_gib": 80},
            {"labels": {"room": "b12"}},
        ],
    )
    def test_each_filter_leaves_out_what_does_not_fit(self, wanted):
        build.device(
            build.host("bad", labels={"room": "c"}), model="Bad", memory_bytes=24 * build.GIB
        )
        good = build.device(build.host("good", labels={"room": "b12", "rack": "4"}), model="Good")
        assert devices_of(book(self.wish(**wanted))) == {good}

    @pytest.mark.parametrize(
        "fields",
        [
            {"bookable": False},
            {"managed_by": Device.ManagedBy.SLURM},
            {"state": Device.State.LOST},
            {"state": Device.State.NEEDS_ATTENTION},
            {"state": Device.State.RETIRED},
        ],
    )
    def test_devices_that_are_out_of_service_are_never_chosen(self, fields):
        build.device(**fields)
        with pytest.raises(Refused) as refused:
            book(self.wish())
        assert refused.value.objections[0].rule == "no_such_devices"

    def test_more_than_any_host_has_is_refused_with_figures(self):
        build.device()
        build.device()
        with pytest.raises(Refused) as refused:
            book(self.wish(2))
        assert "At most 1 devices on one host fit" in str(refused.value)

    def test_a_full_fleet_is_taken_and_the_next_time_is_offered(self):
        device = build.device()
        build.booking(device)
        with pytest.raises(SlotTaken) as taken:
            book(self.wish())
        assert taken.value.alternatives[0].start == NOON + HOUR


class TestRefusals:
    def test_all_objections_are_said_at_once(self):
        build.rule("max_length", 1, name="length")
        build.rule("horizon", 1, name="horizon")
        build.rule("max_devices", 1, name="devices-at-once")
        stranger, host = build.user(), build.host()
        wish = of(build.device(host), build.device(host, bookable=False), duration=48 * HOUR)
        with pytest.raises(Refused) as refused:
            book(wish, by=stranger)
        assert {one.rule for one in refused.value.objections} == {
            "no_account",
            "not_bookable",
            "length",
            "horizon",
            "devices-at-once",
        }

    def test_objections_come_before_the_question_whether_it_is_free(self):
        device = build.device()
        build.booking(device)
        with pytest.raises(Refused):
            book(of(device), by=build.user())

    def test_whoever_stands_in_the_way_is_named_until_when(self):
        alice, device = build.person("alice"), build.device()
        theirs = build.booking(device, owner=alice)
        with pytest.raises(SlotTaken) as taken:
            book(of(device))
        blocker = taken.value.blockers[0]
        assert (blocker.device, blocker.owner, blocker.end) == (device.uuid, "alice", NOON + HOUR)
        assert blocker.booking == theirs.pk

    def test_names_are_hidden_where_the_site_hides_them(self, settings):
        settings.SHOW_OWNERS = False
        device = build.device()
        build.booking(device)
        with pytest.raises(SlotTaken) as taken:
            book(of(device))
        assert taken.value.blockers[0].owner is None

    def test_a_similar_device_at_the_same_time_is_offered_first_then_later_times(self):
        host = build.host()
        device, similar = build.device(host), build.device(host)
        build.device(host, model="Other")
        build.booking(device)
        with pytest.raises(SlotTaken) as taken:
            book(of(device))
        offers = [(one.devices, one.start) for one in taken.value.alternatives]
        assert offers == [((similar.uuid,), NOON), ((device.uuid,), NOON + HOUR)]

    def test_what_the_rules_would_refuse_is_not_offered(self):
        build.rule("horizon", 2.5 / 24, name="horizon")
        device = build.device()
        build.booking(device)
        with pytest.raises(SlotTaken) as taken:
            book(of(device))
        assert taken.value.alternatives == []

    def test_of_one_that_is_too_long_the_longest_legal_one_is_offered_if_it_is_free(self):
        build.rule("max_length", 2, name="length")
        device = build.device()
        wish = of(device, duration=5 * HOUR)
        with pytest.raises(Refused) as refused:
            book(wish)
        offers = [(one.devices, one.start, one.end) for one in refused.value.alternatives]
        assert offers == [((device.uuid,), NOON, NOON + 2 * HOUR)]
        build.booking(device, start=NOON + HOUR)
        with pytest.raises(Refused) as refused:
            book(wish)
        assert refused.value.alternatives == []

    @pytest.mark.parametrize(
        "fields",
        [
            {"devices": ()},
            {"devices": ("GPU-unknown",)},
            {"devices": ("a", "a")},
            {"count": 1},
            {"purpose": "x" * 201},
            {"purpose": "a\r\nBEGIN:VALARM"},
            {"purpose": "a\x00b"},
            {"purpose": "a\u2028b"},
            {"people": ("nobody",)},
            {"people": tuple(f"p{number}" for number in range(201))},
            {"team": "no such team"},
            {"kind": "party"},
        ],
    )
    def test_what_makes_no_sense_is_invalid(self, fields):
        with pytest.raises(Invalid):
            book(of(build.device(), **fields))

    @pytest.mark.parametrize("count", [0, -1, 1_001, 10**30])
    def test_a_count_that_makes_no_sense_is_invalid(self, count):
        with pytest.raises(Invalid):
            book(Wish(count=count, start=NOON, duration=HOUR))

    def test_all_faults_are_said_at_once(self):
        with pytest.raises(Invalid) as invalid:
            book(of(build.device(), purpose="\x07", duration=-HOUR))
        assert set(invalid.value.errors) == {"purpose", "duration_s"}

    def test_a_team_of_others_is_not_to_be_booked_for(self):
        team = build.team(build.person())
        with pytest.raises(Invalid):
            book(of(build.device(), team=team.name))


class TestAccounts:
    def test_an_account_on_that_very_host_is_enough(self):
        host, alice = build.host(), build.user()
        build.account(alice, host)
        assert book(of(build.device(host)), by=alice).pk

    def test_an_account_elsewhere_is_not(self):
        alice = build.user()
        build.account(alice, build.host())
        with pytest.raises(Refused) as refused:
            book(of(build.device()), by=alice)
        assert refused.value.objections[0].rule == "no_account"

    def test_the_people_need_one_too(self):
        build.user("bob")
        with pytest.raises(Refused) as refused:
            book(of(build.device(), people=("bob",)))
        assert refused.value.objections[0].facts["person"] == "bob"

    def test_nobody_needs_one_where_usernames_are_unix_names(self, settings):
        settings.UNIX_NAMES = "username"
        assert book(of(build.device()), by=build.user()).pk

    def test_maintenance_needs_none_because_it_opens_nothing(self):
        assert book(of(build.device(), kind="maintenance"), by=build.operator()).pk

    def test_somebody_whose_access_ends_before_the_booking_is_refused(self):
        guest = build.person(expires_at=NOON + 30 * MINUTE)
        with pytest.raises(Refused) as refused:
            book(of(build.device()), by=guest)
        assert refused.value.objections[0].rule == "expires"

    def test_somebody_deactivated_is_refused_even_with_an_open_session(self):
        alice = build.person()
        seen_before = build.actor(alice)
        type(alice).objects.filter(pk=alice.pk).update(is_active=False)
        with pytest.raises(Refused) as refused:
            bookings.book(of(build.device()), actor=seen_before, now=NOW)
        assert refused.value.objections[0].rule == "inactive"


class TestRules:
    def test_the_rules_of_ordinary_bookings_bind_operators_too(self):
        build.rule("max_length", 1, name="length", match={"kind": "normal"})
        operator = build.operator()
        build.account(operator)
        with pytest.raises(Refused):
            book(of(build.device(), duration=2 * HOUR), by=operator)

    def test_service_and_maintenance_by_operators_are_exempt_by_the_match(self):
        build.rule("max_length", 1, name="length", match={"kind": "normal"})
        operator = build.operator()
        build.account(operator)
        for kind in ("service", "maintenance"):
            assert book(of(build.device(), kind=kind, duration=2 * HOUR), by=operator).pk

    def test_rules_count_only_between_their_dates(self):
        build.rule("max_length", 0, name="over", valid_to=NOW)
        build.rule("max_length", 0, name="to-come", valid_from=NOW + HOUR)
        assert book(of(build.device())).pk

    def test_a_rule_may_ask_for_approval_and_the_booking_waits_without_holding(self):
        build.rule("max_length", 0.5, name="long", action="needs_approval")
        device = build.device()
        booking = book(of(device))
        assert booking.state == "pending"
        assert not Allocation.objects.get(booking=booking).holds
        assert book(of(device, duration=30 * MINUTE)).state == "confirmed"

    def test_a_rule_that_only_warns_lets_pass_and_is_told_by_the_check(self):
        build.rule("max_length", 0.5, name="soft", action="warn")
        wish = of(build.device())
        dry = bookings.check(wish, actor=build.actor(build.person()), now=NOW)
        assert dry.free
        assert dry.warnings[0].rule == "soft"
        assert book(wish).state == "confirmed"

    def test_eight_devices_at_once_are_counted_over_all_bookings_of_a_person(self):
        build.rule("max_devices", 2, name="devices-at-once")
        alice = build.person()
        book(of(build.device(), build.device()), by=alice)
        with pytest.raises(Refused) as refused:
            book(of(build.device()), by=alice)
        assert "2 booked already" in str(refused.value)
        assert book(of(build.device(), start=NOON + HOUR), by=alice).pk


class TestForWhom:
    def test_operators_book_for_others_who_are_told(self):
        alice, operator = build.person("alice"), build.operator("admin")
        booking = book(of(build.device(), owner="alice"), by=operator)
        assert (booking.owner, booking.created_by) == (alice, operator)
        notice = Notice.objects.get(user=alice)
        assert notice.text.startswith("admin made your booking")

    def test_nobody_else_does(self):
        build.person("alice")
        with pytest.raises(Forbidden):
            book(of(build.device(), owner="alice"))

    @pytest.mark.parametrize("kind", ["service", "maintenance"])
    def test_only_operators_make_service_and_maintenance_bookings(self, kind):
        with pytest.raises(Forbidden):
            book(of(build.device(), kind=kind))

    def test_nobody_is_told_of_what_they_did_themselves(self):
        book(of(build.device()))
        assert not Notice.objects.exists()


class TestCheck:
    def check(self, wish, by=None, **fields):
        return bookings.check(wish, actor=build.actor(by or build.person()), now=NOW, **fields)

    def test_it_says_what_booking_would_come_to_and_writes_nothing(self):
        build.rule("max_devices", 8, name="devices-at-once")
        device = build.device()
        found = self.check(of(device))
        assert found.free
        assert (found.period.start, found.period.end) == (NOON, NOON + HOUR)
        assert found.devices == [device]
        quota = {one.rule: (one.used, one.asked, one.limit) for one in found.quota}
        assert quota["devices-at-once"] == (0, 1, 8)
        assert not Booking.objects.exists()

    def test_it_lists_blockers_and_alternatives_and_objections_together(self):
        build.rule("max_length", 0.5, name="length")
        device = build.device()
        build.booking(device)
        found = self.check(of(device))
        assert not found.free
        assert found.blockers
        assert [one.rule for one in found.objections] == ["length"]

    def test_a_booking_does_not_stand_in_its_own_way(self):
        device = build.device()
        mine = build.booking(device)
        assert not self.check(of(device, start=NOON + 30 * MINUTE)).free
        assert self.check(of(device, start=NOON + 30 * MINUTE), leave_out=mine.pk).free

    def test_of_a_running_booking_it_judges_a_later_end_with_the_start_where_it_is(self):
        build.rule("max_length", 2, name="length")
        alice, device = build.person(), build.device()
        mine = build.booking(device, owner=alice)

        def check(hours):
            return bookings.check(
                of(device, start=NOON, end=NOON + hours * HOUR, duration=None),
                actor=build.actor(alice),
                now=NOON + 30 * MINUTE,
                leave_out=mine.pk,
            )

        assert check(2).free
        assert check(2).period.start == NOON
        assert [one.rule for one in check(3).objections] == ["length"]

    def test_where_nothing_fits_there_is_no_period(self):
        found = self.check(Wish(count=1, start=NOON, duration=HOUR))
        assert not found.free
        assert found.period is None
        assert found.objections[0].rule == "no_such_devices"
