"""/livez and /healthz: what lives, by its own signs."""

from datetime import timedelta

import pytest
from django.conf import settings as site

from reservations import clock
from reservations.models import HostStatus
from reservations.services import pulses
from tests import build
from tests.servers import free_port

pytestmark = pytest.mark.django_db


@pytest.fixture
def all_alive(redis_url):
    for name in (pulses.BEAT, pulses.CONTROL):
        pulses.beat(name, now=clock.now())


def health(client):
    answer = client.get("/healthz")
    return answer.status_code, answer.json()


def test_livez_needs_nothing_but_the_web_process(client, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert client.get("/livez").status_code == 200


def test_everything_fresh_is_200(client, all_alive):
    assert health(client) == (
        200,
        {
            "status": "ok",
            "web": "ok",
            "database": "ok",
            "control": "ok",
            "beat": "ok",
            "redis": "ok",
            "silent_hosts": [],
            "never_heard_of_hosts": [],
        },
    )


@pytest.mark.parametrize("name", [pulses.BEAT, pulses.CONTROL])
def test_a_part_without_a_fresh_pulse_is_503_and_named(client, all_alive, name):
    pulses.beat(name, now=clock.now() - timedelta(seconds=31))
    status, body = health(client)
    assert (status, body["status"]) == (503, "down")
    assert body[name].startswith("not seen since")


def test_parts_that_were_never_seen_are_said_to_be(client):
    status, body = health(client)
    assert status == 503
    assert body["beat"] == body["control"] == "never seen"


def test_a_redis_that_does_not_answer_is_503_within_a_second(client, all_alive, monkeypatch):
    monkeypatch.setattr(site, "REDIS_URL", f"redis://127.0.0.1:{free_port()}/0")
    began = clock.now()
    status, body = health(client)
    assert clock.now() - began < timedelta(seconds=1)
    assert (status, body["database"]) == (503, "ok")
    assert body["redis"].startswith("does not answer")


def test_silent_hosts_are_named_and_are_no_reason_to_restart_anything(client, all_alive):
    HostStatus.objects.create(host=build.host("gpu7"), silent_since=clock.now())
    status, body = health(client)
    assert (status, body["status"], body["silent_hosts"]) == (200, "degraded", ["gpu7"])


def test_hosts_that_have_never_called_are_named(client, all_alive):
    build.host("gpu8")
    HostStatus.objects.create(host=build.host("gpu9"))
    HostStatus.objects.create(host=build.host("gpu1"), last_seen=clock.now())
    status, body = health(client)
    assert (status, body["status"]) == (200, "ok")
    assert body["never_heard_of_hosts"] == ["gpu8", "gpu9"]
