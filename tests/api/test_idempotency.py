"""A request with an Idempotency-Key takes effect once, however often it arrives."""

from datetime import timedelta

import pytest

from reservations import clock
from reservations.models import ApiCall, AuditEntry, Booking
from tests import build
from tests.api.callers import Caller, is_problem, soon, text
from tests.api.test_auth import signed_in

pytestmark = pytest.mark.django_db


def test_a_repeated_post_makes_one_booking_and_gets_the_same_bytes(alice, device) -> None:
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    caller = Caller(alice)
    # The first answer is lost on its way; the script only knows that it has asked.
    first = caller.post("bookings/", body, Idempotency_Key="k-1")
    again = caller.post("bookings/", body, Idempotency_Key="k-1")
    assert first.status_code == again.status_code == 201
    assert again.content == first.content
    assert again["Content-Type"] == first["Content-Type"]
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert Booking.objects.count() == AuditEntry.objects.filter(verb="booked").count() == 1


def test_the_answer_is_replayed_as_it_was_although_the_booking_changed(alice, device) -> None:
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    caller = Caller(alice)
    first = caller.post("bookings/", body, Idempotency_Key="k-1")
    caller.patch(f"bookings/{first.json()['id']}", {"purpose": "changed"})
    assert caller.post("bookings/", body, Idempotency_Key="k-1").content == first.content


def test_another_body_or_path_or_method_under_the_key_is_422(alice, device) -> None:
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    caller = Caller(alice)
    made = caller.post("bookings/", body, Idempotency_Key="k").json()["id"]
    for response in (
        caller.post("bookings/", {**body, "duration_s": 300}, Idempotency_Key="k"),
        caller.post(f"bookings/{made}/release", body=None, Idempotency_Key="k"),
        caller.delete(f"bookings/{made}", Idempotency_Key="k"),
    ):
        is_problem(response, 422, "idempotency_mismatch")
    assert Booking.objects.get().state == "confirmed"


def test_a_slash_makes_no_other_path(alice, device) -> None:
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    caller = Caller(alice)
    caller.post("bookings/", body, Idempotency_Key="k")
    assert caller.post("bookings", body, Idempotency_Key="k")["Idempotency-Replayed"] == "true"


def test_every_verb_keeps_its_key(alice, device) -> None:
    caller = Caller(alice)
    start = clock.now() - timedelta(hours=1)
    booking = build.booking(device, owner=alice, start=start, end=soon(2))
    path = f"bookings/{booking.pk}"
    for send in (
        lambda: caller.patch(path, {"purpose": "x"}, Idempotency_Key="patch"),
        lambda: caller.post(f"{path}/extend", {"duration_s": 600}, Idempotency_Key="extend"),
        lambda: caller.post(f"{path}/release", Idempotency_Key="release"),
        lambda: caller.delete(path, Idempotency_Key="delete"),
    ):
        first, again = send(), send()
        assert first.status_code == 200, first.content
        assert again.content == first.content
        assert again["Idempotency-Replayed"] == "true"
    trail = AuditEntry.objects.filter(booking=booking.pk).order_by("pk")
    assert [entry.verb for entry in trail] == [
        "edited",
        "extended",
        "released",
    ]


def test_an_extension_that_is_repeated_extends_once(alice, device) -> None:
    booking = build.booking(
        device, owner=alice, start=clock.now() - timedelta(hours=1), end=soon(2)
    )
    for _ in range(3):
        Caller(alice).post(f"bookings/{booking.pk}/extend", {"duration_s": 600}, X="y")
    caller = Caller(alice)
    end = Booking.objects.get().end
    for _ in range(3):
        caller.post(f"bookings/{booking.pk}/extend", {"duration_s": 600}, Idempotency_Key="e")
    assert Booking.objects.get().end == end + timedelta(minutes=10)


def test_a_refusal_is_not_kept(alice, device) -> None:
    start = soon(1)
    other = build.booking(device, start=start)
    body = {"devices": [device.uuid], "start": text(start), "duration_s": 3600}
    caller = Caller(alice)
    is_problem(caller.post("bookings/", body, Idempotency_Key="k"), 409, "slot_taken")
    assert not ApiCall.objects.exists()
    Caller(other.owner).delete(f"bookings/{other.pk}")
    assert caller.post("bookings/", body, Idempotency_Key="k").status_code == 201


def test_keys_belong_to_the_credential_that_used_them(alice, device) -> None:
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    assert Caller(alice).post("bookings/", body, Idempotency_Key="k").status_code == 201
    response = Caller(alice).post("bookings/", body, Idempotency_Key="k")
    is_problem(response, 409, "slot_taken")
    in_browser = signed_in(alice).post(
        "/api/v1/bookings/",
        body,
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )
    is_problem(in_browser, 409, "slot_taken")


@pytest.mark.parametrize("key", ["", " ", "x" * 201, "schlüssel", "a\tb", "two words"])
def test_a_key_that_is_none_is_400(alice, device, key: str) -> None:
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    response = Caller(alice).post("bookings/", body, Idempotency_Key=key)
    assert "Idempotency-Key" in is_problem(response, 400, "invalid")["errors"]
    assert not Booking.objects.exists()


def test_a_key_of_200_characters_is_fine(alice, device) -> None:
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    assert Caller(alice).post("bookings/", body, Idempotency_Key="x" * 200).status_code == 201
