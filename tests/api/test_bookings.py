"""Each verb through REST: its status, its body, and what it leaves behind."""

from datetime import timedelta
from typing import Any

import pytest

from reservations import clock
from reservations.models import Allocation, AuditEntry, Booking, Device, Rule, User
from tests import build
from tests.api.callers import Caller, is_problem, soon, text

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture
def alice() -> User:
    user = build.user("alice", display_name="Alice")
    build.account(user)
    return user


@pytest.fixture
def device() -> Device:
    return build.device(build.host("sim-a"), index=0)


def running(device: Device, owner: User, **fields: Any) -> Booking:
    start = clock.now() - HOUR
    return build.booking(device, owner=owner, start=start, end=soon(2), **fields)


def test_booking_named_devices_answers_201_with_the_whole_booking(alice, device) -> None:
    start = soon(1)
    response = Caller(alice).post(
        "bookings/",
        {"devices": [device.uuid], "start": text(start), "duration_s": 3600, "purpose": "train"},
    )
    assert response.status_code == 201, response.content
    assert response["Content-Type"] == "application/json"
    made = Booking.objects.get()
    assert response.json() == {
        "id": made.pk,
        "revision": 1,
        "state": "confirmed",
        "phase": "upcoming",
        "kind": "normal",
        "start": start.isoformat().replace("+00:00", "Z"),
        "end": (start + HOUR).isoformat().replace("+00:00", "Z"),
        "planned_end": (start + HOUR).isoformat().replace("+00:00", "Z"),
        "devices": [{"uuid": device.uuid, "host": "sim-a", "index": 0, "name": device.name}],
        "owner": {"username": "alice", "name": "Alice"},
        "people": [],
        "team": None,
        "pinned": True,
        "purpose": "train",
        "opening": None,
        "keep_if_free": False,
        "early_signal": False,
        "source": "api",
        "ended_reason": "",
        "created": response.json()["created"],
        "can": ["move", "extend", "cancel"],
    }
    entry = AuditEntry.objects.get(booking=made)
    assert (entry.verb, entry.actor, entry.source_address) == ("booked", alice, "127.0.0.1")


def test_booking_by_count_chooses_devices_and_starts_now(alice) -> None:
    host = build.host("sim-a")
    for _ in range(3):
        build.device(host)
    made = Caller(alice).post("bookings/", {"count": 2, "duration_s": 1800, "model": "Test 80GB"})
    assert made.status_code == 201, made.content
    assert len(made.json()["devices"]) == 2
    assert made.json()["phase"] == "active"
    assert made.json()["pinned"] is False


def test_a_time_of_any_offset_is_the_instant_it_names(alice, device) -> None:
    start = soon(1)
    shanghai = (start.replace(tzinfo=None) + 8 * HOUR).isoformat() + "+08:00"
    made = Caller(alice).post(
        "bookings/", {"devices": [device.uuid], "start": shanghai, "duration_s": 300}
    )
    assert made.status_code == 201, made.content
    assert Booking.objects.get().start == start


def test_a_taken_slot_is_409_with_who_until_when_and_what_instead(alice, device) -> None:
    bob = build.user("bob", display_name="Bob")
    build.device(device.host)
    start = soon(1)
    build.booking(device, owner=bob, start=start, hours=2)
    response = Caller(alice).post(
        "bookings/", {"devices": [device.uuid], "start": text(start + HOUR), "duration_s": 3600}
    )
    problem = is_problem(response, 409, "slot_taken")
    (blocker,) = problem["blockers"]
    assert blocker["device"] == device.uuid
    assert blocker["owner"] == "Bob"
    assert blocker["end"] == (start + 2 * HOUR).isoformat().replace("+00:00", "Z")
    assert problem["alternatives"]
    free = problem["alternatives"][0]
    assert Caller(alice).post("bookings/", free).status_code == 201
    assert Booking.objects.filter(owner=alice).count() == 1


def test_rules_refuse_with_all_their_objections(alice, device) -> None:
    Rule.objects.all().delete()
    build.rule("max_length", 7, name="week")
    build.rule("horizon", 30, name="month")
    response = Caller(alice).post(
        "bookings/",
        {"devices": [device.uuid], "start": text(soon(24 * 40)), "duration_s": 3650 * 86_400 // 2},
    )
    problem = is_problem(response, 422, "refused")
    assert {one["rule"] for one in problem["objections"]} == {"week", "month"}
    assert all(one["text"] for one in problem["objections"])
    assert "alternatives" in problem
    assert not Booking.objects.exists()


def test_somebody_without_an_account_on_the_host_is_refused(device) -> None:
    stranger = build.user("eve")
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 300}
    problem = is_problem(Caller(stranger).post("bookings/", body), 422, "refused")
    assert [one["rule"] for one in problem["objections"]] == ["no_account"]


def test_a_check_answers_and_writes_nothing(alice, device) -> None:
    start = soon(1)
    body = {"devices": [device.uuid], "start": text(start), "duration_s": 3600}
    free = Caller(alice).post("bookings/check", body).json()
    assert free["free"] is True
    assert free["devices"] == [device.uuid]
    assert free["start"] == start.isoformat().replace("+00:00", "Z")
    assert free["blockers"] == free["objections"] == free["alternatives"] == []
    build.booking(device, start=start, hours=1)
    taken = Caller(alice).post("bookings/check", body).json()
    assert taken["free"] is False
    assert len(taken["blockers"]) == 1
    assert taken["alternatives"]
    assert Booking.objects.count() == 1


def test_a_check_can_leave_out_the_booking_that_is_to_move(alice, device) -> None:
    start = soon(1)
    mine = build.booking(device, owner=alice, start=start, hours=2)
    body = {"devices": [device.uuid], "start": text(start + HOUR), "duration_s": 3600}
    assert Caller(alice).post("bookings/check", body).json()["free"] is False
    body["booking"] = mine.pk
    assert Caller(alice).post("bookings/check", body).json()["free"] is True


def test_reading_one_gives_its_revision_as_etag(alice, device) -> None:
    booking = build.booking(device, owner=alice, start=soon(1), revision=4)
    response = Caller(alice).get(f"bookings/{booking.pk}")
    assert response.status_code == 200
    assert response["ETag"] == '"4"'


@pytest.mark.parametrize("key", ["999999", "9" * 18, "9" * 40, "0", "-1", "x"])
def test_a_booking_that_does_not_exist_is_404_for_every_verb(alice, key: str) -> None:
    caller = Caller(alice)
    for response in (
        caller.get(f"bookings/{key}"),
        caller.patch(f"bookings/{key}", {"purpose": "x"}),
        caller.delete(f"bookings/{key}"),
        caller.post(f"bookings/{key}/extend", {"duration_s": 300}),
        caller.post(f"bookings/{key}/release"),
    ):
        is_problem(response, 404, "not_found")


def test_a_move_changes_time_devices_and_purpose_as_one(alice, device) -> None:
    other = build.device(device.host)
    start = soon(1)
    booking = build.booking(device, owner=alice, start=start)
    response = Caller(alice).patch(
        f"bookings/{booking.pk}",
        {
            "start": text(start + HOUR),
            "end": text(start + 3 * HOUR),
            "devices": [other.uuid],
            "purpose": "later",
        },
        If_Match='"1"',
    )
    assert response.status_code == 200, response.content
    body = response.json()
    assert (body["revision"], body["purpose"]) == (2, "later")
    assert [one["uuid"] for one in body["devices"]] == [other.uuid]
    assert Allocation.objects.filter(holds=True, device=other, start=start + HOUR).count() == 1
    assert not Allocation.objects.filter(holds=True, device=device).exists()


def test_a_stale_revision_is_412_with_the_booking_as_it_is(alice, device) -> None:
    booking = build.booking(device, owner=alice, start=soon(1), revision=3, purpose="mine")
    for response in (
        Caller(alice).patch(f"bookings/{booking.pk}", {"purpose": "x"}, If_Match='"2"'),
        Caller(alice).delete(f"bookings/{booking.pk}", If_Match='"2"'),
    ):
        problem = is_problem(response, 412, "stale")
        assert problem["booking"]["revision"] == 3
        assert problem["booking"]["purpose"] == "mine"
    assert Booking.objects.get().state == "confirmed"


@pytest.mark.parametrize("header", ['"1"', "1", "*", 'W/"1"'])
def test_the_revision_may_be_spelled_in_any_usual_way(alice, device, header: str) -> None:
    booking = build.booking(device, owner=alice, start=soon(1))
    response = Caller(alice).patch(f"bookings/{booking.pk}", {"purpose": "x"}, If_Match=header)
    assert response.status_code == 200, response.content


@pytest.mark.parametrize("header", ["", "abc", '"1", "2"', "9" * 30, "-1"])
def test_a_revision_that_is_none_is_400(alice, device, header: str) -> None:
    booking = build.booking(device, owner=alice, start=soon(1))
    response = Caller(alice).patch(f"bookings/{booking.pk}", {"purpose": "x"}, If_Match=header)
    assert "If-Match" in is_problem(response, 400, "invalid")["errors"]


def test_the_start_of_a_running_booking_does_not_move(alice, device) -> None:
    booking = running(device, alice)
    response = Caller(alice).patch(f"bookings/{booking.pk}", {"start": text(soon(1))})
    is_problem(response, 409, "not_possible_now")


def test_a_move_onto_a_neighbour_is_409(alice, device) -> None:
    start = soon(1)
    mine = build.booking(device, owner=alice, start=start)
    build.booking(device, start=start + HOUR)
    response = Caller(alice).patch(f"bookings/{mine.pk}", {"end": text(start + 1.5 * HOUR)})
    assert is_problem(response, 409, "slot_taken")["blockers"]
    mine.refresh_from_db()
    assert mine.end == start + HOUR


def test_deleting_an_upcoming_booking_cancels_it(alice, device) -> None:
    booking = build.booking(device, owner=alice, start=soon(1))
    for _ in range(2):
        response = Caller(alice).delete(f"bookings/{booking.pk}")
        assert response.status_code == 200
        assert response.json()["state"] == "cancelled"
    assert not Allocation.objects.filter(holds=True).exists()


def test_deleting_a_running_booking_releases_it(alice, device) -> None:
    booking = running(device, alice)
    first = Caller(alice).delete(f"bookings/{booking.pk}")
    assert first.status_code == 200
    assert first.json()["phase"] == "ended"
    assert first.json()["ended_reason"] == "released"
    again = Caller(alice).delete(f"bookings/{booking.pk}")
    assert (again.status_code, again.json()["end"]) == (200, first.json()["end"])


def test_history_is_neither_moved_nor_deleted(alice, device) -> None:
    ended = build.booking(device, owner=alice, start=clock.now() - 5 * HOUR)
    caller, path = Caller(alice), f"bookings/{ended.pk}"
    for response in (
        caller.delete(path),
        caller.post(f"{path}/release"),
        caller.post(f"{path}/extend", {"duration_s": 3600}),
        caller.patch(path, {"end": text(soon(3))}),
    ):
        is_problem(response, 409, "not_possible_now")
    assert not AuditEntry.objects.filter(booking=ended.pk).exists()


def test_extend_takes_a_duration_or_an_end(alice, device) -> None:
    booking = running(device, alice)
    longer = Caller(alice).post(f"bookings/{booking.pk}/extend", {"duration_s": 1800})
    assert longer.status_code == 200, longer.content
    assert longer.json()["end"] == (booking.end + HOUR / 2).isoformat().replace("+00:00", "Z")
    later = Caller(alice).post(
        f"bookings/{booking.pk}/extend", {"end": text(booking.end + 2 * HOUR)}
    )
    assert later.json()["planned_end"] == later.json()["end"]


def test_release_ends_a_running_booking_now(alice, device) -> None:
    booking = running(device, alice)
    response = Caller(alice).post(f"bookings/{booking.pk}/release")
    assert response.status_code == 200, response.content
    assert response.json()["phase"] == "ended"
    assert response.json()["planned_end"] == booking.end.isoformat().replace("+00:00", "Z")


def test_free_slots_come_earliest_first_and_can_be_booked(alice, device) -> None:
    build.booking(device, start=clock.now() - HOUR, end=soon(3))
    found = Caller(alice).get("slots", count=1, duration_s=3600, limit=3).json()
    assert found["next"] is None
    assert found["results"][0]["start"] == soon(3).isoformat().replace("+00:00", "Z")
    assert Caller(alice).post("bookings/", found["results"][0]).status_code == 201


def test_more_devices_than_there_are_is_refused_in_words(alice, device) -> None:
    response = Caller(alice).get("slots", count=40, duration_s=3600)
    assert is_problem(response, 422, "refused")["objections"][0]["rule"] == "no_such_devices"


@pytest.mark.parametrize(
    "path",
    ["me", "hosts", "devices", "calendar?from=2027-01-01T00:00Z&to=2027-01-02T00:00Z", "bookings"],
)
def test_paths_answer_with_and_without_a_slash(alice, path: str) -> None:
    bare, question, query = path.partition("?")
    for spelled in (bare, f"{bare}/"):
        assert Caller(alice).get(f"{spelled}{question}{query}").status_code == 200


def test_verbs_answer_with_a_slash_too(alice, device) -> None:
    booking = running(device, alice)
    caller = Caller(alice)
    body = {"devices": [device.uuid], "start": text(soon(5)), "duration_s": 300}
    assert caller.post("bookings/check/", body).status_code == 200
    assert caller.post("bookings", body).status_code == 201
    assert caller.get(f"bookings/{booking.pk}/").status_code == 200
    assert caller.post(f"bookings/{booking.pk}/extend/", {"duration_s": 300}).status_code == 200
    assert caller.post(f"bookings/{booking.pk}/release/").status_code == 200
