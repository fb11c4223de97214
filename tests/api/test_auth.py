from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from reservations import clock
from reservations.models import AuditEntry, Host, Token, User
from reservations.services import tokens
from reservations.services.actors import BERTH
from tests import build
from tests.api.callers import Caller, is_problem, soon, text

pytestmark = pytest.mark.django_db


def bearer(secret: str) -> Caller:
    caller = Caller(None)
    caller.headers["Authorization"] = f"Bearer {secret}"
    return caller


def issue(user: User, **options: Any) -> tuple[Token, str]:
    return tokens.issue_token(
        user, **{"name": "t", "scopes": ["book"], "actor": BERTH, "now": clock.now(), **options}
    )


def signed_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def test_a_token_says_who_asks() -> None:
    me = Caller(build.user("alice", display_name="Alice")).get("me").json()
    assert (me["username"], me["name"], me["scopes"]) == ("alice", "Alice", ["read", "book"])


def test_without_a_credential_it_is_401_with_the_way_to_sign_in() -> None:
    response = Caller(None).get("me")
    is_problem(response, 401, "not_authenticated")
    assert response["WWW-Authenticate"] == 'Bearer realm="berth"'


@pytest.mark.parametrize("secret", ["", "berth_wrong", "a b c", "gerät", "x" * 5000, "\x7f"])
def test_a_wrong_token_is_401(secret: str) -> None:
    is_problem(bearer(secret).get("me"), 401, "not_authenticated")


def test_a_wrong_token_is_401_even_where_a_session_would_do() -> None:
    client = signed_in(build.user())
    response = client.get("/api/v1/me", headers={"Authorization": "Bearer berth_wrong"})
    is_problem(response, 401, "not_authenticated")


def test_only_the_digest_of_a_token_is_kept() -> None:
    token, secret = issue(build.user())
    assert secret.startswith("berth_")
    assert len(secret) >= len("berth_") + 43  # 256 bits in base64
    assert secret not in repr(Token.objects.filter(pk=token.pk).values())


def test_a_revoked_token_is_401() -> None:
    token, secret = issue(build.user())
    assert bearer(secret).get("me").status_code == 200
    tokens.revoke_token(token, actor=build.actor(token.user), now=clock.now())
    tokens.revoke_token(token, actor=BERTH, now=clock.now())
    told = AuditEntry.objects.values_list("verb", "actor_label", "after__name")
    assert list(told) == [("token_made", "berth", "t"), ("token_revoked", token.user.username, "t")]
    is_problem(bearer(secret).get("me"), 401, "not_authenticated")


def test_an_expired_token_is_401() -> None:
    token, secret = issue(build.user(), expires_at=clock.now() + timedelta(days=1))
    assert bearer(secret).get("me").status_code == 200
    Token.objects.filter(pk=token.pk).update(expires_at=clock.now())
    is_problem(bearer(secret).get("me"), 401, "not_authenticated")


@pytest.mark.parametrize("change", [{"is_active": False}, {"expires_at": build.NOON.replace(2020)}])
def test_inactive_and_expired_people_are_refused_at_both_doors(change: dict[str, Any]) -> None:
    user = build.user()
    caller, client = Caller(user), signed_in(user)
    User.objects.filter(pk=user.pk).update(**change)
    is_problem(caller.get("me"), 401, "not_authenticated")
    is_problem(client.get("/api/v1/me"), 401, "not_authenticated")


def test_a_hosts_token_is_not_a_personal_one() -> None:
    secret = "host-secret-of-sim-a"
    build.host("sim-a", token_digest=tokens.digest(secret))
    assert Host.objects.filter(token_digest=tokens.digest(secret)).exists()
    is_problem(bearer(secret).get("me"), 401, "not_authenticated")


def test_the_last_use_is_noted_at_most_once_a_minute() -> None:
    user = build.user()
    caller = Caller(user)
    caller.get("me")
    first = Token.objects.get(user=user).last_used_at
    assert first is not None
    caller.get("me")
    assert Token.objects.get(user=user).last_used_at == first
    Token.objects.update(last_used_at=first - timedelta(minutes=2))
    caller.get("me")
    assert Token.objects.get(user=user).last_used_at > first - timedelta(minutes=1)


def test_a_known_token_costs_one_query(django_assert_num_queries: Any) -> None:
    from django.test import RequestFactory
    from rest_framework.request import Request

    from reservations.api.auth import BearerAuthentication

    _, secret = issue(build.user())
    request = Request(RequestFactory().get("/", headers={"Authorization": f"Bearer {secret}"}))
    BearerAuthentication().authenticate(request)
    with django_assert_num_queries(1):
        found = BearerAuthentication().authenticate(request)
    assert found is not None


def test_a_session_reads_and_with_its_csrf_token_writes() -> None:
    user, device = build.user(), build.device()
    build.account(user)
    client = signed_in(user, enforce_csrf_checks=True)
    assert client.get("/api/v1/me").json()["scopes"] == ["read", "book", "admin"]
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    refused = client.post("/api/v1/bookings/", body, content_type="application/json")
    is_problem(refused, 403, "forbidden")
    client.cookies["csrftoken"] = "a" * 32
    made = client.post(
        "/api/v1/bookings/",
        body,
        content_type="application/json",
        headers={"X-CSRFToken": "a" * 32},
    )
    assert made.status_code == 201, made.content


@pytest.mark.parametrize(
    ("scopes", "may"),
    [("read", ["read"]), ("book", ["read", "book"]), ("admin", ["read", "book", "admin"])],
)
def test_each_scope_includes_the_weaker_ones(scopes: str, may: list[str]) -> None:
    assert Caller(build.user(), scopes=scopes).get("me").json()["scopes"] == may


def test_a_read_token_reads_and_tries_but_changes_nothing() -> None:
    user, device = build.user(), build.device()
    build.account(user)
    booking = build.booking(device, owner=user, start=soon(3))
    caller = Caller(user, scopes="read")
    body = {"devices": [device.uuid], "start": text(soon(1)), "duration_s": 3600}
    assert caller.get("bookings/").status_code == 200
    assert caller.post("bookings/check", body).status_code == 200
    path = f"bookings/{booking.pk}"
    for response in (
        caller.post("bookings/", body),
        caller.patch(path, {"purpose": "x"}),
        caller.delete(path),
        caller.post(f"{path}/extend", {"duration_s": 300}),
        caller.post(f"{path}/release"),
    ):
        is_problem(response, 403, "forbidden")


def test_an_operators_rights_travel_only_with_the_admin_scope() -> None:
    operator, device = build.operator(), build.device()
    booking = build.booking(device, start=soon(3), purpose="secret plan")
    path = f"bookings/{booking.pk}"
    lent = Caller(operator, scopes="book")
    assert lent.get("me").json()["is_operator"] is False
    assert lent.get(path).json()["purpose"] == ""
    is_problem(lent.delete(path), 403, "forbidden")
    whole = Caller(operator, scopes="admin")
    assert whole.get(path).json()["purpose"] == "secret plan"
    assert whole.delete(path).status_code == 200
    operator.refresh_from_db()
    assert operator.is_operator
