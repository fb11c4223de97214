"""Django's admin: for operators, read-only where history is, through services where rules are."""

import pytest
from django.contrib import admin
from django.urls import reverse

from reservations import clock
from reservations.models import Account, AuditEntry, Booking, Device, Host, Rule, User
from reservations.services import hosts
from tests import build
from tests.hosts import HOUR, registered, report

pytestmark = pytest.mark.django_db
OURS = [model for model in admin.site._registry if model._meta.app_label == "reservations"]
READ_ONLY = {"booking", "auditentry", "report", "hoststatus", "notice", "token"}


def address(model, action="changelist", *args):
    return reverse(f"admin:reservations_{model._meta.model_name}_{action}", args=args)


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Without `collectstatic` there are no hashed names."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}


@pytest.fixture
def operator(client):
    client.force_login(build.operator("admin"))
    return client


def test_only_operators_get_in(client):
    client.force_login(build.user("alice"))
    for model in OURS:
        assert client.get(address(model)).status_code == 302


@pytest.mark.parametrize("model", OURS, ids=lambda model: model._meta.model_name)
def test_every_list_and_form_opens(model, operator):
    host, _ = registered("gpu1")
    build.account(build.user(), host)
    build.team()
    booking = build.booking(build.device(host))
    Rule.objects.create(name="long", kind="max_length", limit=7)
    from reservations.services import enforcement, notices

    told = report("opened", booking=booking.pk, at=clock.now())
    enforcement.record(host, [told], received_at=clock.now())
    notices.tell([booking.owner_id], "kind", "text", key="k", now=clock.now())
    assert operator.get(address(model)).status_code == 200
    for row in model.objects.all()[:2]:
        page = operator.get(address(model, "change", row.pk))
        assert page.status_code == 200
        saves = b'name="_save"' in page.content
        assert saves is (model._meta.model_name not in READ_ONLY)


@pytest.mark.parametrize("name", sorted(READ_ONLY))
def test_history_and_decisions_cannot_be_written(name, operator):
    model = next(model for model in OURS if model._meta.model_name == name)
    assert operator.get(address(model, "add")).status_code == 403
    if model is Booking:
        booking = build.booking()
        for action in ("change", "delete"):
            answer = operator.post(address(model, action, booking.pk), {"purpose": "changed"})
            assert answer.status_code == 403


def test_a_new_host_gets_a_token_that_is_shown_once(operator):
    answer = operator.post(
        address(Host, "add"),
        {"name": "gpu9", "mode": "warn", "settings": "{}", "labels": "{}"},
        follow=True,
    )
    (shown,) = [str(message) for message in answer.context["messages"] if "Token" in str(message)]
    host = Host.objects.get(name="gpu9")
    assert hosts.host_of_token(shown.rsplit(" ", 1)[1]) == host
    assert AuditEntry.objects.get(verb="host_added").actor.username == "admin"


def test_settings_that_no_host_could_act_on_are_not_saved(operator):
    host, _ = registered("gpu1")
    answer = operator.post(
        address(Host, "change", host.pk),
        {"mode": "enforce", "settings": '{"grace": 5}', "labels": "{}"},
        follow=True,
    )
    assert "is no setting of a host" in answer.content.decode()
    host.refresh_from_db()
    assert host.settings == {}


def test_a_device_that_is_booked_does_not_change_hands(operator):
    device = build.device(registered("gpu1")[0])
    build.booking(device, start=clock.now() + HOUR)
    answer = operator.post(
        address(Device, "change", device.pk), {"managed_by": "slurm"}, follow=True
    )
    assert "There are bookings on this device" in answer.content.decode()
    device.refresh_from_db()
    assert device.managed_by == "berth"


@pytest.mark.django_db(transaction=True)
def test_deactivating_somebody_ends_their_bookings_too(operator):
    alice = build.user("alice")
    booking = build.booking(owner=alice, start=clock.now() + HOUR)
    fields = {"username": "alice", "kind": "person", "display_name": "", "email": ""}
    answer = operator.post(address(User, "change", alice.pk), fields)
    assert answer.status_code == 302, answer.context["errors"]
    alice.refresh_from_db()
    booking.refresh_from_db()
    assert (alice.is_active, booking.state) == (False, "cancelled")


def test_a_rule_that_cannot_be_obeyed_is_not_saved(operator):
    fields = {"name": "odd", "kind": "no such kind", "limit": 1, "match": "{}",
              "scope": "user", "action": "deny"}  # fmt: skip
    answer = operator.post(address(Rule, "add"), fields, follow=True)
    assert "unknown kind" in answer.content.decode()
    assert not Rule.objects.filter(name="odd").exists()


def trail():
    """What the operator did by form: the verb, and what it was before and after."""
    entries = AuditEntry.objects.filter(actor__username="admin").order_by("id")
    return [(one.verb, one.before, one.after) for one in entries]


def test_a_rule_leaves_its_making_changing_and_going_in_the_trail(operator):
    fields = {"name": "short", "kind": "max_length", "limit": 4, "match": "{}",
              "scope": "user", "action": "deny"}  # fmt: skip
    operator.post(address(Rule, "add"), fields)
    rule = Rule.objects.get(name="short")
    operator.post(address(Rule, "change", rule.pk), {**fields, "limit": 8})
    operator.post(address(Rule, "change", rule.pk), {**fields, "limit": 8})
    operator.post(address(Rule, "delete", rule.pk), {"post": "yes"})
    limits = [
        (verb, before and before["limit"], after and after["limit"])
        for verb, before, after in trail()
    ]
    assert limits == [
        ("rule_added", None, 4),
        ("rule_changed", 4, 8),
        ("rule_removed", 8, None),
    ]
    assert not Rule.objects.filter(name="short").exists()


def test_an_account_is_in_the_trail_and_its_hosts_are_nudged(operator, monkeypatch):
    nudged = []
    monkeypatch.setattr("reservations.announce.nudge", lambda names: nudged.append(set(names)))
    host, _ = registered("gpu1")
    registered("gpu2")
    alice = build.user("alice")
    fields = {"user": alice.pk, "host": host.pk, "unix_name": "alice", "expected_uid": 1001}
    operator.post(address(Account, "add"), fields)
    account = Account.objects.get()
    operator.post(address(Account, "change", account.pk), {**fields, "host": ""})
    chosen = {"action": "delete_selected", "_selected_action": [account.pk], "post": "yes"}
    operator.post(address(Account), chosen)
    here = {"user": "alice", "host": "gpu1", "unix_name": "alice", "expected_uid": 1001}
    everywhere = {**here, "host": None}
    assert trail() == [
        ("account_added", None, here),
        ("account_changed", here, everywhere),
        ("account_removed", everywhere, None),
    ]
    assert nudged == [{"gpu1"}, {"gpu1", "gpu2"}, {"gpu1", "gpu2"}]
    assert not Account.objects.exists()


def test_labels_of_a_host_are_in_the_trail(operator):
    host, _ = registered("gpu1")
    fields = {"mode": "enforce", "settings": "{}", "labels": '{"room": "2"}'}
    for _ in range(2):
        operator.post(address(Host, "change", host.pk), fields)
    labels = [entry for entry in trail() if "labels" in entry[2]]
    assert labels == [("host_changed", {"labels": {}}, {"labels": {"room": "2"}})]


def test_who_becomes_an_operator_is_in_the_trail(operator):
    alice = build.user("alice")
    fields = {"username": "alice", "kind": "person", "is_active": "on"}
    for rights in ({"is_operator": "on"}, {"is_operator": "on"}, {}):
        operator.post(address(User, "change", alice.pk), {**fields, **rights})
        alice.refresh_from_db()
        assert alice.is_operator is bool(rights)
    assert trail() == [
        ("operator_changed", None, {"user": "alice", "is_operator": True}),
        ("operator_changed", None, {"user": "alice", "is_operator": False}),
    ]


@pytest.mark.parametrize("mode", ["observe", "warn", "enforce"])
@pytest.mark.parametrize("sent", ["observe", "warn", "enforce"])
def test_a_host_changes_its_mode_only_on_the_page_that_shows_whom_it_would_stop(
    operator, mode, sent
):
    """Nor does a form that was opened before somebody switched it there."""
    host = build.host("gpu1", mode=mode)
    form = {"name": "gpu1", "settings": '{"grace_s": 5}', "labels": "{}", "mode": sent}
    for _ in range(2):
        operator.post(address(Host, "change", host.pk), form)
    host.refresh_from_db()
    assert (host.mode, host.settings) == (mode, {"grace_s": 5})
    assert [verb for verb, _, _ in trail()] == ["host_changed"]
