"""The doors for hosts: a host's token opens its own plan and reports, and nothing else."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from django.test import Client

from reservations import clock
from reservations.core import wire
from reservations.models import AuditEntry, Device, HostStatus, Report
from reservations.services import hosts, plans
from reservations.services.actors import BERTH
from tests import build
from tests.api.callers import is_problem
from tests.hosts import HOUR, MINUTE, info, inventory, registered, report, sample, samples

pytestmark = pytest.mark.django_db
FIXTURES = Path(__file__).parents[1] / "fixtures"


class Agent:
    """A host that calls; ``token`` may be anything."""

    def __init__(self, token: str | None) -> None:
        self.client = Client(enforce_csrf_checks=True)
        self.headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def send(self, method, name, body=b"", **headers):
        data = body if isinstance(body, bytes | str) else msgspec.json.encode(body)
        return self.client.generic(
            method,
            f"/api/v1/agent/{name}",
            data=data,
            content_type="application/json",
            headers={**self.headers, **headers},
        )

    def plan(self, **headers):
        return self.send("GET", "plan", **headers)

    def put_inventory(self, body):
        return self.send("PUT", "inventory", body)

    def post_reports(self, *reports):
        return self.send("POST", "reports", wire.Reports(reports=reports))

    def post_samples(self, body):
        return self.send("POST", "samples", body)


CALLS = [("PUT", "inventory"), ("GET", "plan"), ("POST", "reports"), ("POST", "samples")]


@pytest.fixture
def gpu1():
    """The host gpu1, and its agent."""
    host, token = registered("gpu1")
    return host, Agent(token)


@pytest.fixture
def gpu2():
    host, token = registered("gpu2")
    return host, Agent(token)


# --- who may come in ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "name"), CALLS)
def test_without_a_hosts_token_nothing_opens(method, name, gpu1):
    for token in (None, "", "berth_host_wrong", "wörng", "x" * 5000):
        answer = Agent(token).send(method, name, b"{}")
        is_problem(answer, 401, "not_authenticated")
        assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize(("method", "name"), CALLS)
def test_a_persons_token_is_forbidden_even_an_operators(method, name, gpu1):
    from reservations.services.tokens import issue_token

    _, secret = issue_token(
        build.operator(), name="t", scopes=["admin"], actor=BERTH, now=clock.now()
    )
    is_problem(Agent(secret).send(method, name, b"{}"), 403, "forbidden")


def test_a_hosts_token_opens_no_door_for_people(gpu1):
    _, agent = gpu1
    answer = agent.client.get("/api/v1/me", headers=agent.headers)
    assert answer.status_code == 401


def test_a_rotated_token_opens_nothing(gpu1):
    host, agent = gpu1
    fresh = hosts.rotate_token(host, actor=BERTH, now=clock.now())
    is_problem(agent.plan(), 401, "not_authenticated")
    assert Agent(fresh).plan().status_code == 200


@pytest.mark.parametrize(("method", "name"), CALLS)
def test_other_methods_are_refused(method, name, gpu1):
    _, agent = gpu1
    wrong = "DELETE" if method != "DELETE" else "GET"
    is_problem(agent.send(wrong, name, b"{}"), 405, "method_not_allowed")


def test_paths_answer_with_and_without_a_trailing_slash(gpu1):
    _, agent = gpu1
    assert agent.send("GET", "plan/").status_code == agent.send("GET", "plan").status_code == 200


# --- the plan ----------------------------------------------------------------------------------------


def test_a_host_gets_its_own_plan(gpu1, gpu2):
    alice = build.user("alice")
    build.account(alice)
    start = clock.now()
    for host, _ in (gpu1, gpu2):
        build.booking(build.device(host, uuid=f"GPU-{host.name}"), owner=alice, start=start)
    for host, agent in (gpu1, gpu2):
        plan = msgspec.json.decode(agent.plan().content, type=wire.Plan)
        assert plan.host == host.name
        assert [grant.device for grant in plan.grants] == [f"GPU-{host.name}"]
        assert plan.settings.managed == (f"GPU-{host.name}",)


def test_an_unchanged_plan_is_304_with_the_instants_that_make_it_fresh(gpu1):
    _, agent = gpu1
    first = agent.plan()
    again = agent.plan(**{"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again["ETag"] == first["ETag"]
    as_of = datetime.fromisoformat(again["X-Berth-As-Of"])
    server_time = datetime.fromisoformat(again["X-Berth-Server-Time"])
    assert datetime.fromisoformat(first["X-Berth-As-Of"]) <= as_of
    assert abs(as_of - server_time) < MINUTE
    assert abs(clock.now() - server_time) < MINUTE


def test_a_booking_a_new_epoch_and_new_settings_each_end_the_304(gpu1):
    host, agent = gpu1
    device = build.device(host)
    alice = build.user("alice")
    build.account(alice)

    def changes():
        yield lambda: build.booking(device, owner=alice, start=clock.now())
        yield plans.new_plan_epoch
        yield lambda: hosts.set_mode(host, mode="warn", settings={}, actor=BERTH, now=clock.now())

    for change in changes():
        known = agent.plan()["ETag"]
        change()
        assert agent.plan(**{"If-None-Match": known}).status_code == 200


# --- what hosts tell ---------------------------------------------------------------------------------


def test_the_committed_examples_are_accepted(gpu1):
    host, agent = gpu1
    assert agent.put_inventory((FIXTURES / "inventory.json").read_bytes()).status_code == 204
    assert host.devices.count() == 3
    answer = agent.post_samples((FIXTURES / "samples.json").read_bytes())
    assert msgspec.json.decode(answer.content, type=wire.SamplesAnswer).plan_etag
    answer = agent.send("POST", "reports", (FIXTURES / "reports.json").read_bytes())
    told = msgspec.json.decode(answer.content, type=wire.ReportsAnswer)
    # Its bookings do not exist here.
    assert (len(told.stored), len(told.rejected)) == (1, 5)


def test_reports_are_stored_once_and_answered_the_same_again(gpu1):
    _, agent = gpu1
    done = report("agent_started", at=clock.now())
    first, again = agent.post_reports(done), agent.post_reports(done)
    assert first.json() == again.json() == {"stored": [done.id]}
    assert Report.objects.count() == 1


def test_reports_about_another_hosts_booking_are_rejected(gpu1, gpu2):
    _, agent = gpu1
    theirs = build.booking(build.device(gpu2[0]))
    told = agent.post_reports(report("killed", booking=theirs.pk, at=clock.now())).json()
    assert [one["code"] for one in told["rejected"]] == ["booking_elsewhere"]
    assert not AuditEntry.objects.filter(booking=theirs).exists()


def test_a_uuid_registered_elsewhere_is_409(gpu1, gpu2):
    _, agent = gpu1
    build.device(gpu2[0], uuid="GPU-theirs")
    is_problem(agent.put_inventory(inventory("GPU-theirs")), 409, "device_elsewhere")
    assert Device.objects.get(uuid="GPU-theirs").host == gpu2[0]


def test_readings_of_another_hosts_device_are_403(gpu1, gpu2):
    host, agent = gpu1
    build.device(gpu2[0], uuid="GPU-theirs")
    is_problem(agent.post_samples(samples(sample("GPU-theirs"))), 403, "forbidden")
    assert HostStatus.objects.get(host=host).last_seen is None


def test_a_heartbeat_hears_the_etag_of_the_plan(gpu1):
    host, agent = gpu1
    build.device(host, uuid="GPU-a")
    answer = agent.post_samples(samples(sample("GPU-a", "bob")))
    assert answer.json()["plan_etag"] == agent.plan()["ETag"].strip('"')
    assert HostStatus.objects.get(host=host).last_seen is not None


# --- bad input ---------------------------------------------------------------------------------------

GARBAGE = {
    "nothing": b"",
    "no JSON": b"{nonsense",
    "no object": b"[]",
    "no UTF-8": b'{"wire": 1, "at": "\xff\xfe"}',
    "half a surrogate": b'{"wire": 1, "at": "\\ud800"}',
    "deep nesting": b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "missing fields": b"{}",
    "wrong types": b'{"agent_version": 5, "devices": 5, "reports": 5, "at": 5, "mode": 5}',
    "huge number": b'{"wire": 1' + b"0" * 400 + b"}",
}


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE)
@pytest.mark.parametrize(("method", "name"), [call for call in CALLS if call[1] != "plan"])
def test_garbage_is_400_and_says_why(method, name, body, gpu1):
    _, agent = gpu1
    problem = is_problem(agent.send(method, name, body), 400, "invalid")
    assert problem["errors"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "short"},
        {"id": "has spaces in it"},
        {"kind": "danced"},
        {"at": "2027-03-01T12:00:00"},
        {"booking": -1},
        {"booking": 2**63},
        {"uid": 2**32},
        {"pids": list(range(201))},
        {"text": "x" * 501},
    ],
)
def test_a_report_that_could_not_be_stored_is_400(wrong, gpu1):
    _, agent = gpu1
    body = {**msgspec.to_builtins(report("gone")), **wrong}
    answer = agent.send("POST", "reports", json.dumps({"reports": [body]}))
    is_problem(answer, 400, "invalid")


@pytest.mark.parametrize("name", ["at", "last_busy"])
@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_reading_of_an_impossible_time_is_400(name, instant, gpu1):
    _, agent = gpu1
    agent.put_inventory(inventory(info("GPU-a")))
    body = msgspec.to_builtins(samples(sample("GPU-a")))
    body["devices"][0][name] = instant
    is_problem(agent.send("POST", "samples", json.dumps(body)), 400, "invalid")


def test_too_many_reports_and_devices_are_400(gpu1):
    _, agent = gpu1
    many = [report("gone") for _ in range(wire.MAX_REPORTS_PER_BATCH + 1)]
    is_problem(agent.post_reports(*many), 400, "invalid")
    crowd = inventory(*(info(f"GPU-{number}") for number in range(wire.MAX_DEVICES_PER_HOST + 1)))
    is_problem(agent.put_inventory(crowd), 400, "invalid")


@pytest.mark.parametrize(("method", "name"), [call for call in CALLS if call[1] != "plan"])
def test_an_oversized_body_is_413(method, name, gpu1):
    _, agent = gpu1
    is_problem(agent.send(method, name, b" " * 1_048_577), 413, "too_large")


@pytest.mark.parametrize(("method", "name"), [call for call in CALLS if call[1] != "plan"])
def test_a_version_that_is_not_spoken_is_400_and_named(method, name, gpu1):
    _, agent = gpu1
    problem = is_problem(agent.send(method, name, b'{"wire": 99}'), 400, "invalid")
    assert "99" in problem["detail"]


def test_a_character_that_no_database_takes_is_left_out(gpu1):
    _, agent = gpu1
    body = report("gone", text="nul", unix_name="bob", at=clock.now())
    text = msgspec.json.encode(wire.Reports(reports=(body,)))
    text = text.replace(b'"nul"', b'"a\\u0000b \\\\u0000 \\\\\\u0000"')
    assert agent.send("POST", "reports", text).status_code == 200
    assert Report.objects.get().body["text"] == "ab \\u0000 \\"


def test_every_field_at_its_limit_is_stored(gpu1):
    host, agent = gpu1
    largest = info(
        "G" * 64,
        vendor="v" * 32,
        index=4096,
        model="模" * 200,
        memory_bytes=2**50,
        minor=2**20,
        bus_id="b" * 64,
    )
    assert agent.put_inventory(inventory(largest)).status_code == 204
    reading = sample("G" * 64, memory_used_bytes=2**63 - 1, utilization_percent=1e308)
    assert agent.post_samples(samples(reading)).status_code == 200
    told = report(
        "stuck",
        id="i" * 64,
        device="G" * 64,
        unix_name="ü" * 64,
        uid=2**32 - 2,
        pids=tuple([2**63 - 1] * 200),
        text="🧯" * 500,
        latency_s=1e308,
        at=clock.now() - timedelta(days=300),
    )
    assert agent.post_reports(told).json() == {"stored": ["i" * 64]}
    assert host.devices.get().state == "needs_attention"
    assert clock.now() - Report.objects.get().at > 24 * HOUR
