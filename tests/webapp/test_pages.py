"""Pages as the server makes them: who sees what, forms, refusals, headers."""

import re
from datetime import UTC, datetime, timedelta
from typing import get_args
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse

from reservations import clock
from reservations.core import wire
from reservations.models import AuditEntry, Booking, User
from tests import build
from webapp.pages import story

pytestmark = pytest.mark.django_db(transaction=True)


def in_hours(hours):
    return clock.now() + timedelta(hours=hours)


@pytest.mark.parametrize("path", ["/", "/live/", "/bookings/", "/bookings/new/", "/bookings/1/"])
def test_pages_are_for_people_who_are_signed_in(client, static_files, path):
    response = client.get(path)
    assert response.status_code == 302
    assert response.url == f"/accounts/login/?next={path}"


def test_every_page_allows_only_what_this_site_serves(signed_in):
    response = signed_in(build.user()).get("/")
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    html = response.content.decode()
    assert not re.search(r"\sstyle=|\son\w+=", html)
    assert all("src=" in tag or "json" in tag for tag in re.findall(r"<script[^>]*>", html))


def test_nobody_signs_up(client, static_files):
    response = client.post("/accounts/signup/", {"username": "eve", "password1": "a long one 123"})
    assert "administrator" in response.content.decode()
    assert "_auth_user_id" not in client.session


def test_an_expired_account_is_not_let_in(client, static_files):
    guest = build.user("guest", expires_at=in_hours(-1))
    guest.set_password("a long one 123")
    guest.save()
    client.post("/accounts/login/", {"login": "guest", "password": "a long one 123"})
    assert "_auth_user_id" not in client.session


@pytest.mark.parametrize("change", [{"is_active": False}, {"expires_at": in_hours(-1)}])
def test_a_session_ends_with_the_access_of_its_person(signed_in, change):
    guest = build.user("guest", is_operator=True)
    client = signed_in(guest)
    assert client.get("/bookings/").status_code == client.get("/admin/").status_code == 200
    User.objects.filter(pk=guest.pk).update(**change)
    assert client.get("/bookings/").url == "/accounts/login/?next=/bookings/"
    assert client.get("/admin/").status_code == 302


def test_times_are_those_of_the_person(signed_in):
    start = datetime(2027, 3, 1, 12, tzinfo=UTC)
    alice = build.user(time_zone="Asia/Kolkata")
    booking = build.booking(owner=alice, start=start, hours=2)
    html = signed_in(alice).get(f"/bookings/{booking.pk}/").content.decode()
    assert "Mon 1 Mar 17:30 – 19:30" in html
    assert "Asia/Kolkata" in html


def test_a_zone_that_no_longer_exists_counts_as_none(signed_in):
    alice = build.user(time_zone="Mars/Olympus")
    assert signed_in(alice).get("/").status_code == 200


def test_a_stranger_sees_who_and_until_when_and_nothing_more(signed_in):
    alice, bob = build.user(display_name="Alice Weber"), build.user()
    booking = build.booking(owner=alice, start=in_hours(1), purpose="secret plan")
    AuditEntry.objects.create(at=clock.now(), actor_label="alice", verb="booked", booking=booking)

    html = signed_in(bob).get(f"/bookings/{booking.pk}/").content.decode()
    assert "Alice Weber" in html
    assert "secret plan" not in html
    assert "What happened" not in html
    assert "Cancel booking" not in html


def test_the_line_for_a_shell_names_devices_by_uuid_and_never_by_index(signed_in):
    """An index is one card to NVML, another to CUDA, and a third to who may see fewer of them."""
    alice, host = build.user(), build.host("sim-a")
    cards = [build.device(host, uuid=f"GPU-{name}", index=n) for n, name in enumerate("ba")]
    booking = build.booking(*cards, owner=alice, start=in_hours(-1), hours=2)

    html = signed_in(alice).get(f"/bookings/{booking.pk}/").content.decode()

    line = re.search(r"ssh -t sim-a env CUDA_VISIBLE_DEVICES=(\S+) bash -l", html)
    assert line
    assert set(line[1].split(",")) == {"GPU-a", "GPU-b"}


OF_THE_HOST = {"drift", "drift_given_up", "hold_fire", "plan_refused", "device_lost", "device_back",
               "agent_started"}  # fmt: skip
BY_PEOPLE_AND_TIME = {"booked", "approved", "rejected", "edited", "moved", "extended", "released",
                      "cancelled", "rebound", "flagged", "started", "ending", "ended"}  # fmt: skip


@pytest.mark.parametrize(
    "verb", sorted(BY_PEOPLE_AND_TIME | set(get_args(wire.ReportKind)) - OF_THE_HOST)
)
def test_whatever_can_happen_to_a_booking_is_told_in_a_sentence(verb):
    entry = AuditEntry(at=build.NOON, actor_label="alice", verb=verb)
    text = story.told(entry, zone=ZoneInfo("UTC")).text
    assert text[0].isupper() or text.startswith(("alice", "somebody", "the device"))
    assert text.endswith(".")


def test_the_story_is_told_with_times_and_latencies(signed_in):
    alice = build.user("alice")
    host = build.host("sim-a")
    device = build.device(host, index=0, model="A100")
    start = datetime(2027, 3, 1, 12, tzinfo=UTC)
    booking = build.booking(device, owner=alice, start=start)
    for second, verb, after in (
        (0, "opened", {"unix_name": "alice", "latency_s": 0.012}),
        (9, "signalled", {"unix_name": "bob", "pids": [4711], "latency_s": 2.5}),
        (10, "something_new", None),
    ):
        AuditEntry.objects.create(
            at=start + timedelta(seconds=second),
            actor_label="host sim-a",
            verb=verb,
            booking=booking,
            device=device,
            host=host,
            after=after,
        )

    html = signed_in(alice).get(f"/bookings/{booking.pk}/").content.decode()
    assert "A100 · 0 (sim-a) opened for alice." in html
    assert "12 ms after the start" in html
    assert "Mon 1 Mar 12:00:09" in html
    assert "SIGTERM, pid 4711" in html
    assert "2.5 s after the end" in html
    assert "something_new" in html


@pytest.mark.parametrize("path", ["/bookings/99/", "/bookings/999999999999999999/"])
def test_a_booking_that_is_none_is_404(signed_in, path):
    response = signed_in(build.user()).get(path)
    assert response.status_code == 404
    assert "There is no such booking" in response.content.decode()


def test_ones_own_list_is_by_phase_and_has_what_is_shared(signed_in):
    alice, bob = build.user(), build.user(display_name="Bob Okafor")
    build.booking(owner=alice, start=in_hours(-1), hours=2, purpose="is running")
    shared = build.booking(owner=bob, start=in_hours(3), purpose="is shared")
    shared.people.add(alice)
    build.booking(owner=alice, start=in_hours(-9), purpose="is past")
    build.booking(owner=bob, start=in_hours(3), purpose="is his")

    response = signed_in(alice).get("/bookings/")
    html = response.content.decode()
    assert [card["booking"].purpose for card in response.context["running"]] == ["is running"]
    assert [card["booking"].purpose for card in response.context["upcoming"]] == ["is shared"]
    assert [card["booking"].purpose for card in response.context["past"]] == ["is past"]
    assert "shared with you by Bob Okafor" in html


class TestTheForm:
    def post(self, client, device, start, end, **fields):
        values = {"devices": [device.uuid], "start": start, "end": end, **fields}
        return client.post("/bookings/new/", values)

    def test_books_in_the_zone_of_the_person(self, signed_in):
        alice = build.person(time_zone="Asia/Kolkata")
        device = build.device()
        day = (clock.now() + timedelta(days=2)).date()
        response = self.post(signed_in(alice), device, f"{day}T09:00", f"{day}T11:30")
        booking = Booking.objects.get()
        assert response.url == reverse("booking", args=[booking.pk])
        assert booking.start == datetime(day.year, day.month, day.day, 3, 30, tzinfo=UTC)
        assert booking.end - booking.start == timedelta(hours=2.5)
        assert booking.source == "web"

    def test_says_who_is_there_and_the_next_slot_and_keeps_what_was_typed(self, signed_in):
        alice = build.person()
        device = build.device()
        day = clock.now().replace(hour=12, minute=0, second=0, microsecond=0) + timedelta(days=2)
        build.booking(device, owner=build.user(display_name="Bob Okafor"), start=day, hours=3)
        response = self.post(
            signed_in(alice),
            device,
            f"{day:%Y-%m-%dT%H:%M}",
            f"{day + timedelta(hours=1):%Y-%m-%dT%H:%M}",
            purpose="keep me",
        )
        html = response.content.decode()
        assert response.status_code == 400
        assert "Bob Okafor" in html
        assert "The next free slot is" in html
        assert "keep me" in html
        assert Booking.objects.count() == 1

    def test_refuses_a_time_that_does_not_exist(self, signed_in):
        alice = build.person(time_zone="Europe/Berlin")
        response = self.post(
            signed_in(alice), build.device(), "2027-03-28T02:30", "2027-03-28T05:00"
        )
        assert "02:30 does not exist on that day" in response.content.decode()

    def test_asks_which_of_two_and_books_that_one(self, signed_in):
        alice = build.person(time_zone="Europe/Berlin")
        client, device = signed_in(alice), build.device()
        times = ("2027-10-31T02:30", "2027-10-31T05:00")
        response = self.post(client, device, *times)
        html = response.content.decode()
        assert "02:30 comes twice on that day" in html
        assert "02:30 UTC+2" in html
        assert "02:30 UTC+1" in html
        assert not Booking.objects.exists()

        build.rule("horizon", 3_000, name="horizon")
        later = "2027-10-31T01:30:00+00:00"
        self.post(client, device, *times, start_offset=later)
        assert Booking.objects.get().start == datetime(2027, 10, 31, 1, 30, tzinfo=UTC)

    @pytest.mark.parametrize(
        "fields",
        [
            {"start": "", "end": ""},
            {"start": "yesterday", "end": "tomorrow"},
            {"start": "9999-12-31T23:59", "end": "9999-12-31T23:59"},
            {"start": "0001-01-01T00:00", "end": "0001-01-02T00:00"},
            {"start": "2027-03-01T12:03", "end": "2027-03-01T13:00"},
            {"start": "2027-03-02T12:00", "end": "2027-03-01T13:00"},
            {"purpose": "x" * 5_000},
            {"purpose": "a\x00b"},
            {"devices": ["GPU-none"]},
            {"devices": []},
        ],
    )
    def test_bad_input_comes_back_with_words(self, signed_in, fields):
        device = build.device()
        good = {
            "devices": [device.uuid],
            "start": "2027-03-01T12:00",
            "end": "2027-03-01T13:00",
            "purpose": "",
        }
        response = signed_in(build.person()).post("/bookings/new/", {**good, **fields})
        assert response.status_code == 400
        assert 'role="alert"' in response.content.decode()
        assert not Booking.objects.exists()


class TestVerbs:
    @pytest.fixture
    def running(self):
        return build.booking(owner=build.person("alice"), start=in_hours(-1), hours=2)

    def test_the_owner_extends_and_releases(self, signed_in, running):
        client = signed_in(running.owner)
        client.post(f"/bookings/{running.pk}/extend/", {"hours": "1"})
        before = running.end
        running.refresh_from_db()
        assert timedelta(hours=1) <= running.end - before < timedelta(hours=1, minutes=5)
        client.post(f"/bookings/{running.pk}/release/")
        running.refresh_from_db()
        assert running.end <= clock.now()

    @pytest.mark.parametrize("verb", ["extend", "release", "cancel"])
    def test_a_stranger_changes_nothing(self, signed_in, running, verb):
        response = signed_in(build.user()).post(f"/bookings/{running.pk}/{verb}/", follow=True)
        before = running.end
        running.refresh_from_db()
        assert running.end == before
        assert 'class="note bad"' in response.content.decode()

    @pytest.mark.parametrize("hours", ["", "many", "-3", "1e400", "nan"])
    def test_strange_hours_break_nothing(self, signed_in, running, hours):
        response = signed_in(running.owner).post(
            f"/bookings/{running.pk}/extend/", {"hours": hours}, follow=True
        )
        assert response.status_code == 200

    def test_reading_changes_nothing(self, signed_in, running):
        assert signed_in(running.owner).get(f"/bookings/{running.pk}/release/").status_code == 405
