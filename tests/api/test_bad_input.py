"""Whatever arrives, the answer says what is wrong with it. Nothing becomes a 500."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError

from reservations.api.pagination import BY_START
from reservations.models import Booking, Device
from tests import build
from tests.api.callers import Caller, is_problem, soon, text

pytestmark = pytest.mark.django_db


def body(device: Device, **fields: Any) -> dict[str, Any]:
    return {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600, **fields}


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"nonsense",
        b"[]",
        b'"text"',
        b"7",
        b"null",
        b'{"count": NaN}',
        b'{"count": Infinity}',
        b'{"count": 1e999}',
        b"\xff\xfe",
        b'{"purpose": "\\ud800"}',
        b'{"purpose": "\xed\xa0\x80"}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"purpose": "x"} {"purpose": "y"}',
    ],
)
def test_a_body_that_is_no_json_object_is_400(alice, raw: bytes) -> None:
    is_problem(Caller(alice).post("bookings/", raw), 400, "invalid")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"start": "2027-03-01T10:00:00"}, "start"),
        ({"start": "2027-03-01"}, "start"),
        ({"start": "tomorrow"}, "start"),
        ({"start": 1_800_000_000}, "start"),
        ({"start": None}, "start"),
        ({"start": "9999-12-31T23:59:59-12:00"}, "start"),
        ({"start": "0001-01-01T00:00:00+14:00"}, "start"),
        ({"start": "2027-03-01T25:00:00Z"}, "start"),
        ({"start": "2027-03-01T10:00:00+99:00"}, "start"),
        ({"start": "2027-03-01T10:00:00Z\x00"}, "start"),
        ({"start": "2020-01-01T00:00:00Z"}, "start"),
        ({"duration_s": 0}, "duration_s"),
        ({"duration_s": -60}, "duration_s"),
        ({"duration_s": 10**30}, "duration_s"),
        ({"duration_s": 1e300}, "duration_s"),
        ({"duration_s": 1.5}, "duration_s"),
        ({"duration_s": "soon"}, "duration_s"),
        ({"duration_s": True}, "duration_s"),
        ({"devices": ["GPU-unknown"]}, "devices"),
        ({"devices": []}, "devices"),
        ({"devices": "GPU-1"}, "devices"),
        ({"devices": [7.5, {}]}, "devices.1"),
        ({"devices": ["a\x00b"]}, "devices.0"),
        ({"devices": ["x" * 5000]}, "devices.0"),
        ({"devices": ["GPU-1"] * 2000}, "devices"),
        ({"purpose": "x" * 5000}, "purpose"),
        ({"purpose": "a\x00b"}, "purpose"),
        ({"purpose": "a\nb"}, "purpose"),
        ({"purpose": ["x"]}, "purpose"),
        ({"purpose": None}, "purpose"),
        ({"count": 2**70}, "count"),
        ({"count": -1}, "count"),
        ({"min_memory_gib": -1, "count": 1}, "min_memory_gib"),
        ({"min_memory_gib": "nan", "count": 1}, "min_memory_gib"),
        ({"min_memory_gib": "inf", "count": 1}, "min_memory_gib"),
        ({"team": "no such team"}, "team"),
        ({"people": ["nobody-of-that-name"]}, "people"),
        ({"people": ["x"] * 5000}, "people"),
        ({"labels": {"a": "b" * 500}}, "labels.a"),
        ({"labels": 3}, "labels"),
        ({"kind": "party"}, "kind"),
        ({"keep_if_free": "perhaps"}, "keep_if_free"),
        ({"color": "red"}, "color"),
    ],
)
def test_each_fault_is_named_by_its_field(alice, device, fields: dict, named: str) -> None:
    response = Caller(alice).post("bookings/", body(device, **fields))
    problem = is_problem(response, 400, "invalid")
    assert named in problem["errors"], problem
    assert all(problem["errors"][named])
    assert not Booking.objects.exists()


def test_an_end_before_the_start_is_400(alice, device) -> None:
    wrong = {"devices": [device.uuid], "start": text(soon(3)), "end": text(soon(2))}
    assert "end" in is_problem(Caller(alice).post("bookings/", wrong), 400, "invalid")["errors"]


def test_a_naive_time_is_told_what_it_lacks(alice, device) -> None:
    wrong = body(device, start="2027-03-01T10:00:00")
    errors = is_problem(Caller(alice).post("bookings/", wrong), 400, "invalid")["errors"]
    assert "offset" in errors["start"][0]


def test_a_time_off_the_grid_hears_the_nearest_ones(alice, device) -> None:
    wrong = body(device, start=text(soon(1) + timedelta(minutes=2)))
    errors = is_problem(Caller(alice).post("bookings/", wrong), 400, "invalid")["errors"]
    assert soon(1).strftime("%H:%M") in errors["start"][0]


def test_ten_years_are_refused_by_a_rule_or_as_out_of_reach(alice, device) -> None:
    build.rule("max_length", 7)
    response = Caller(alice).post("bookings/", body(device, duration_s=3650 * 86_400))
    assert response.status_code in {400, 422}
    response = Caller(alice).post("bookings/", body(device, duration_s=1000 * 86_400))
    is_problem(response, 422, "refused")


def test_all_faults_are_told_at_once(alice, device) -> None:
    wrong = body(device, start="?", duration_s=-1, color="red")
    errors = is_problem(Caller(alice).post("bookings/", wrong), 400, "invalid")["errors"]
    assert set(errors) == {"start", "duration_s", "color"}


def test_a_change_of_nothing_is_400(alice, device) -> None:
    booking = build.booking(device, owner=alice, start=soon(1))
    is_problem(Caller(alice).patch(f"bookings/{booking.pk}", {}), 400, "invalid")
    is_problem(Caller(alice).post(f"bookings/{booking.pk}/extend"), 400, "invalid")
    booking.refresh_from_db()
    assert booking.revision == 1


def test_neither_devices_nor_count_or_both_is_400(alice, device) -> None:
    for wrong in ({"duration_s": 300}, body(device, count=1)):
        assert (
            "devices"
            in is_problem(Caller(alice).post("bookings/", wrong), 400, "invalid")["errors"]
        )


@pytest.mark.parametrize(
    "purpose", ["训练 大模型 🚀", "تدريب النموذج", "👩‍👩‍👧‍👦" * 10, "‏עברית", "é" * 200, "<b>&\"'"]
)
def test_any_language_is_welcome(alice, device, purpose: str) -> None:
    alice.display_name = purpose[:150]
    alice.save()
    made = Caller(alice).post("bookings/", body(device, purpose=purpose))
    assert made.status_code == 201, made.content
    assert made.json()["purpose"] == purpose
    assert made.json()["owner"]["name"] == purpose[:150]


def test_an_oversized_body_is_413(alice) -> None:
    huge = json.dumps({"purpose": "x" * 1_100_000})
    is_problem(Caller(alice).post("bookings/", huge), 413, "too_large")


@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "a" * 900]
)
def test_another_content_type_is_415(alice, content_type: str) -> None:
    caller = Caller(alice)
    response = caller.client.generic(
        "POST", "/api/v1/bookings/", b"a=1", content_type=content_type, headers=caller.headers
    )
    is_problem(response, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "bookings/"),
        ("POST", "me"),
        ("DELETE", "hosts/"),
        ("OPTIONS", "me"),
        ("TRACE", "me"),
    ],
)
def test_a_method_that_is_not_there_is_405(alice, method: str, path: str) -> None:
    caller = Caller(alice)
    response = caller.client.generic(method, f"/api/v1/{path}", headers=caller.headers)
    is_problem(response, 405, "method_not_allowed")
    assert "GET" in response["Allow"]


@pytest.mark.parametrize("path", ["", "nothing", "bookings/1/fly", "v2", "../../etc", "%00"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_path_is_404(alice, method: str, path: str) -> None:
    caller = Caller(alice)
    response = caller.client.generic(method, f"/api/v1/{path}", headers=caller.headers)
    is_problem(response, 404, "not_found")


@pytest.mark.parametrize(
    ("path", "query", "named"),
    [
        ("bookings/", {"page_size": -1}, "page_size"),
        ("bookings/", {"page_size": 0}, "page_size"),
        ("bookings/", {"page_size": 501}, "page_size"),
        ("bookings/", {"page_size": 10**40}, "page_size"),
        ("bookings/", {"cursor": "x"}, "cursor"),
        ("bookings/", {"cursor": "W10="}, "cursor"),
        ("bookings/", {"cursor": "a:b:c"}, "cursor"),
        ("bookings/", {"cursor": "é\x01:😀"}, "cursor"),
        ("bookings/", {"cursor": "x" * 900}, "cursor"),
        ("bookings/", {"owner": "a\x00"}, "owner"),
        ("bookings/", {"from": "2027-01-01"}, "from"),
        ("bookings/", {"state": "open"}, "state"),
        ("bookings/", {"phase": "soon"}, "phase"),
        ("bookings/", {"onwer": "alice"}, "onwer"),
        ("bookings/", {"mine": "perhaps"}, "mine"),
        ("devices/", {"cursor": "bm90IGpzb24="}, "cursor"),
        ("hosts/", {"cursor": BY_START.cursor(Booking(pk=1, start=build.NOON))}, "cursor"),
        ("me", {"x": 1}, "x"),
        ("calendar", {}, "from"),
        ("calendar", {"from": "2027-01-01T00:00Z"}, "to"),
        ("calendar", {"from": "2027-01-02T00:00Z", "to": "2027-01-01T00:00Z"}, "to"),
        ("calendar", {"from": "2027-01-01T00:00Z", "to": "2027-03-05T00:00Z"}, "to"),
        ("slots", {"count": 1}, "duration_s"),
        ("slots", {"count": 0, "duration_s": 60}, "count"),
        ("slots", {"count": 1, "duration_s": 60, "after": "2150-01-01T00:00Z"}, "after"),
        ("slots", {"count": 1, "duration_s": 60, "limit": 1000}, "limit"),
    ],
)
def test_a_query_that_makes_no_sense_is_400(alice, device, path, query, named) -> None:
    build.booking(device, owner=alice, start=soon(1))
    response = Caller(alice).get(path, **query)
    assert named in is_problem(response, 400, "invalid")["errors"]


def test_a_plus_that_arrives_as_a_space_is_a_plus(alice, device) -> None:
    booking = build.booking(device, start=build.NOON)
    caller = Caller(alice)
    spoiled = "from=2027-03-01T13:00:00+01:00&to=2027-03-01T14:30:00+01:00"
    response = caller.client.get(f"/api/v1/bookings/?{spoiled}", headers=caller.headers)
    assert [one["id"] for one in response.json()["results"]] == [booking.pk]


def test_62_days_can_be_drawn(alice) -> None:
    query = {"from": "2027-01-01T00:00Z", "to": "2027-03-04T00:00Z"}
    assert Caller(alice).get("calendar", **query).status_code == 200


def test_a_database_that_does_not_answer_is_503(alice, monkeypatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("the connection was lost")

    monkeypatch.setattr("reservations.selectors.listing.chosen", refuse)
    response = Caller(alice).get("bookings/")
    is_problem(response, 503, "busy")
    assert response["Retry-After"] == "1"


def test_a_lock_that_is_not_to_be_had_is_503(alice, device, monkeypatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("reservations.services.locks.people", refuse)
    response = Caller(alice).post("bookings/", body(device))
    is_problem(response, 503, "busy")
    assert response["Retry-After"] == "1"
