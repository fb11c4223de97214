"""The sockets: who may listen, what they hear, and that one subscription serves a process."""

import asyncio
from datetime import timedelta

import pytest
import redis
from asgiref.sync import sync_to_async
from django.test import Client

from reservations import announce, clock, livestore
from reservations.models import Booking
from reservations.services import holds
from tests import build
from tests.webapp.sockets import Socket
from webapp.live import base
from webapp.live.hub import Listener, hub

pytestmark = pytest.mark.django_db(transaction=True)
in_thread = sync_to_async(thread_sensitive=True)


@in_thread
def person(name, **fields):
    made = build.person(name, **fields)
    client = Client()
    client.force_login(made)
    return made, client


@in_thread
def changed(booking):
    announce.booking_changed(Booking.objects.get(pk=booking.pk))
    assert announce.courier.wait_until_idle(5)


@pytest.fixture
def quiet_redis(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        yield client
        client.flushdb()


def live(uuid, host="sim-a", percent=5):
    return {"uuid": uuid, "host": host, "utilization_percent": percent}


async def eventually(fact, limit_s=5):
    deadline = asyncio.get_running_loop().time() + limit_s
    while not await fact():
        assert asyncio.get_running_loop().time() < deadline, "it never came true"
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("path", ["/ws/calendar/", "/ws/live/"])
async def test_whoever_is_not_signed_in_is_sent_away(path):
    one = Socket(path)
    assert await one.connect()
    assert await one.close_code() == base.SIGNED_OUT


async def test_an_access_that_has_expired_is_no_sign_in_any_more():
    _, client = await person("guest", expires_at=clock.now())
    one = Socket("/ws/calendar/", client=client)
    assert await one.connect()
    assert await one.close_code() == base.SIGNED_OUT


@pytest.mark.parametrize("path", ["/ws/calendar/", "/ws/live/"])
@pytest.mark.parametrize("origin", ["http://evil.example", None])
async def test_pages_of_other_sites_may_not_listen(path, origin):
    _, client = await person("alice")
    one = Socket(path, client=client, origin=origin)
    assert not await one.connect()


async def test_an_unknown_path_is_closed_quietly():
    one = Socket("/ws/nothing/here")
    assert await one.connect()
    assert await one.close_code() == base.UNKNOWN_PATH


async def test_everybody_hears_the_masked_row_and_the_owner_the_whole_one():
    alice, alices = await person("alice")
    _, bobs = await person("bob")
    booking = await in_thread(build.booking)(owner=alice, purpose="secret plan")
    hers, his = Socket("/ws/calendar/", client=alices), Socket("/ws/calendar/", client=bobs)
    assert await hers.connect()
    assert await his.connect()

    await changed(booking)

    masked = await his.hear()
    assert masked["type"] == "booking"
    assert masked["row"]["id"] == booking.pk
    assert masked["row"]["purpose"] == ""
    assert (await hers.hear())["row"]["purpose"] == "secret plan"
    assert await hers.receive_nothing()
    assert await his.receive_nothing()
    await hers.leave()
    await his.leave()


@in_thread
def hold(**fields):
    admin = build.operator()
    now = clock.now()
    until = now + timedelta(hours=1)
    return holds.hold(None, until=until, actor=build.actor(admin), now=now, **fields)


@in_thread
def resume():
    holds.resume(None, actor=build.actor(build.operator()), now=clock.now())


async def test_everybody_hears_at_once_which_hosts_are_held_and_whoever_comes_later_too():
    _, client = await person("alice")
    await in_thread(build.host)("sim-a")
    early, late = Socket("/ws/calendar/", client=client), Socket("/ws/calendar/", client=client)
    assert await early.connect()

    await hold(reason="new driver")
    await resume()
    await hold(reason="new driver again")

    said = [await early.hear() for _ in range(3)]
    assert {one["type"] for one in said} == {"hosts"}
    reasons = [[held["reason"] for held in one["row"]["holds"].values()] for one in said]
    assert reasons == [["new driver"], [], ["new driver again"]]
    assert await late.connect()
    assert (await late.hear())["row"] == said[-1]["row"]
    await early.leave()
    await late.leave()


async def test_a_site_that_hides_names_hides_them_from_strangers(settings):
    settings.SHOW_OWNERS = False
    alice, alices = await person("alice")
    _, bobs = await person("bob")
    booking = await in_thread(build.booking)(owner=alice)
    hers, his = Socket("/ws/calendar/", client=alices), Socket("/ws/calendar/", client=bobs)
    assert await hers.connect()
    assert await his.connect()

    await changed(booking)

    assert (await his.hear())["row"]["owner"] is None
    assert (await hers.hear())["row"]["owner"]["username"] == "alice"
    await hers.leave()
    await his.leave()


async def test_operators_hear_every_row_whole():
    alice, _ = await person("alice")
    _, client = await person("root", is_operator=True)
    booking = await in_thread(build.booking)(owner=alice, purpose="secret plan")
    one = Socket("/ws/calendar/", client=client)
    assert await one.connect()

    await changed(booking)

    assert (await one.hear())["row"]["purpose"] == "secret plan"
    await one.leave()


async def test_whoever_left_hears_nothing_more():
    alice, client = await person("alice")
    booking = await in_thread(build.booking)(owner=alice)
    one = Socket("/ws/calendar/", client=client)
    assert await one.connect()
    await one.leave()

    await changed(booking)
    assert await one.receive_nothing()


async def test_a_ping_tells_that_the_connection_lives(monkeypatch):
    monkeypatch.setattr(base, "PING_EVERY_S", 0.01)
    _, client = await person("alice")
    one = Socket("/ws/calendar/", client=client)
    assert await one.connect()
    assert await one.hear() == {"type": "ping"}
    await one.leave()


async def test_what_a_browser_says_is_ignored():
    _, client = await person("alice")
    one = Socket("/ws/calendar/", client=client)
    assert await one.connect()
    await one.say(text='{"type": "booking.changed", "row": {}}')
    await one.say(bytes=b"\x00\xff")
    assert await one.receive_nothing()
    await one.leave()


async def test_live_pages_get_a_snapshot_and_then_each_tick(quiet_redis):
    _, client = await person("alice")
    livestore.publish([live("GPU-1")], now=clock.now())
    one = Socket("/ws/live/", client=client)
    assert await one.connect()
    snapshot = await one.hear()
    assert snapshot["type"] == "snapshot"
    assert [(row["uuid"], len(row["ring"])) for row in snapshot["devices"]] == [("GPU-1", 1)]

    async def listening():
        return bool(await in_thread(quiet_redis.pubsub_numsub)(livestore.CHANNEL)) and (
            quiet_redis.pubsub_numsub(livestore.CHANNEL)[0][1] == 1
        )

    await eventually(listening)
    livestore.publish([live("GPU-1", percent=80)], now=clock.now())

    tick = await one.hear()
    assert tick == {"type": "devices", "devices": [live("GPU-1", percent=80)]}
    await one.leave()


async def test_one_subscription_serves_all_and_ends_with_the_last(quiet_redis):
    _, client = await person("alice")
    sockets = [Socket("/ws/live/", client=client) for _ in range(5)]
    for one in sockets:
        assert await one.connect()
        await one.hear()

    def subscribers():
        return quiet_redis.pubsub_numsub(livestore.CHANNEL)[0][1]

    async def one_listens():
        return subscribers() == 1

    async def none_listens():
        return subscribers() == 0

    await eventually(one_listens)
    livestore.publish([live("GPU-1")], now=clock.now())
    for one in sockets:
        assert (await one.hear())["type"] == "devices"
    assert livestore.watched()

    for one in sockets:
        await one.leave()
    await eventually(none_listens)
    assert not hub().listeners


async def test_a_page_that_closes_before_it_was_told_anything_leaves_nothing_behind(
    quiet_redis, monkeypatch
):
    def gone(*, now):
        raise ConnectionResetError("the browser went away")

    monkeypatch.setattr(livestore, "snapshot", gone)
    _, client = await person("alice")
    one = Socket("/ws/live/", client=client)
    assert await one.connect()
    with pytest.raises(ConnectionResetError):
        await one.wait(5)
    assert not hub().listeners

    async def none_listens():
        return quiet_redis.pubsub_numsub(livestore.CHANNEL)[0][1] == 0

    await eventually(none_listens)


async def test_a_slow_browser_gets_the_newest_tick_of_each_host_only():
    listener = Listener()
    for percent in range(5):
        listener.put("sim-a", f"a{percent}")
        listener.put("sim-b", f"b{percent}")
    assert await listener.texts() == ["a4", "b4"]

    waiting = asyncio.create_task(listener.texts())
    listener.put("sim-a", "a5")
    assert await waiting == ["a5"]


async def test_rubbish_on_the_channel_stops_nothing(quiet_redis):
    _, client = await person("alice")
    one = Socket("/ws/live/", client=client)
    assert await one.connect()
    await one.hear()

    async def listening():
        return quiet_redis.pubsub_numsub(livestore.CHANNEL)[0][1] == 1

    await eventually(listening)
    for rubbish in (b"\xff\xfe", b"[]", b'{"devices": []}', b"{"):
        quiet_redis.publish(livestore.CHANNEL, rubbish)
    livestore.publish([live("GPU-1")], now=clock.now() + timedelta(seconds=1))

    assert (await one.hear())["devices"][0]["uuid"] == "GPU-1"
    await one.leave()
