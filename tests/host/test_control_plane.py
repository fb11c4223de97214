"""The HTTP client against a real server that answers well, badly, slowly or not at all."""

from datetime import timedelta

import msgspec
import pytest

from reservations.core.wire import Inventory, Plan, Report, Reports, Samples, SamplesAnswer
from tests.host.clocks import NOON
from tests.host.control_plane import TOKEN, ControlPlaneDouble, grant
from workers.host import control_plane
from workers.host.clock import HostClock
from workers.host.control_plane import ControlPlane, Garbage, Refused, Unchanged, Unreachable


@pytest.fixture
def double():
    with ControlPlaneDouble("sim-a") as made:
        yield made


@pytest.fixture
def client(double):
    made = ControlPlane(url=double.url, token=TOKEN, clock=HostClock())
    yield made
    made.close()


def test_an_unchanged_plan_comes_as_two_instants(double, client):
    double.grants = (grant("GPU-1"),)
    plan = client.fetch_plan(None)
    assert isinstance(plan, Plan)

    again = client.fetch_plan(plan.etag)

    assert isinstance(again, Unchanged)
    assert again.as_of > plan.as_of
    assert isinstance(client.fetch_plan("another"), Plan)


def test_a_heartbeat_sets_the_clock(double):
    clock = HostClock()
    double.now = lambda: NOON
    client = ControlPlane(url=double.url, token=TOKEN, clock=clock)

    client.post_samples(Samples(at=NOON, agent_version="0", mode="observe"))

    assert abs(clock.now() - NOON) < timedelta(seconds=5)
    client.close()


def test_reports_and_inventory_arrive_as_they_were_sent(double, client):
    report = Report(id="report-1", at=NOON, kind="opened", pids=(1, 2))

    answer = client.post_reports(Reports(reports=(report,)))
    client.put_inventory(Inventory(agent_version="0", devices=()))

    assert answer.stored == ("report-1",)
    assert double.received == [report]
    assert double.inventory.devices == ()


def test_a_wrong_token_is_a_refusal(double):
    client = ControlPlane(url=double.url, token="another", clock=HostClock())

    with pytest.raises(Refused) as caught:
        client.fetch_plan(None)

    assert caught.value.status == 401
    client.close()


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[]", b"\xff\xff", b'{"host": 3}', b""])
def test_an_answer_of_another_shape_is_garbage(double, client, body):
    double.spoil = body

    with pytest.raises(Garbage):
        client.fetch_plan(None)


@pytest.mark.parametrize("year", [1, 1969, 2200, 9999])
@pytest.mark.parametrize("field", ["as_of", "server_time", "complete_until", "start", "end"])
def test_an_instant_that_cannot_be_reckoned_with_is_garbage(double, client, field, year):
    """The agent adds to such instants and subtracts from them, in every look."""
    content = msgspec.json.decode(msgspec.json.encode(double.plan()))
    content["grants"] = [msgspec.json.decode(msgspec.json.encode(grant("GPU-1")))]
    about = content["grants"][0] if field in {"start", "end"} else content
    about[field] = f"{year:04}-12-31T23:59:59Z"
    double.spoil = msgspec.json.encode(content)

    with pytest.raises(Garbage):
        client.fetch_plan(None)


@pytest.mark.parametrize("year", [1, 9999])
@pytest.mark.parametrize("shape", [SamplesAnswer, Unchanged])
def test_no_other_answer_comes_from_beyond_all_clocks(shape, year):
    instant = f"{year:04}-12-31T23:59:59Z"
    content = {"plan_etag": "t", "server_time": instant, "as_of": "2027-03-01T12:00:00Z"}

    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(content, shape)


def test_an_endless_answer_is_cut_off(double, client, monkeypatch):
    monkeypatch.setattr(control_plane, "MAX_ANSWER_BYTES", 1000)
    double.spoil = b" " * 5000

    with pytest.raises(Garbage):
        client.fetch_plan(None)


def test_nobody_there_and_no_answer_in_time_are_unreachable(double, monkeypatch):
    monkeypatch.setattr(control_plane, "READ_TIMEOUT_S", 0.1)
    client = ControlPlane(url=double.url, token=TOKEN, clock=HostClock())
    double.hold.clear()
    with pytest.raises(Unreachable):
        client.fetch_plan(None)
    double.hold.set()
    double.down()

    with pytest.raises(Unreachable):
        client.fetch_plan(None)
    client.close()
