"""The pages around the timeline, with and without scripts."""

from datetime import timedelta

import pytest
import redis
from playwright.sync_api import expect

from reservations import clock, livestore
from reservations.models import Booking
from reservations.selectors.visible import instant
from tests import build, waiting

pytestmark = pytest.mark.browser


def test_sign_in_leads_to_the_page_that_was_asked_for(visit, people, devices):
    people["alice"].set_password("alice's own")
    people["alice"].save()
    page = visit(people["alice"], "/live/")
    page.context.clear_cookies()

    page.goto("/bookings/")
    page.get_by_label("Username").fill("alice")
    page.get_by_label("Password").fill("alice's own")
    page.get_by_role("button", name="Sign in").click()

    page.wait_for_url("**/bookings/")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/")
    page.goto("/")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_without_scripts_the_timeline_is_a_table_and_the_form_books(visit, people, devices):
    build.booking(
        devices[0], owner=people["bob"], start=clock.now(), end=clock.now() + timedelta(hours=1)
    )
    page = visit(people["alice"], "/", java_script_enabled=False)
    row = page.get_by_role("row", name="sim-a: A100 80GB · 0")
    expect(row).to_contain_text("Bob Okafor")
    expect(page.locator("#timeline")).to_be_hidden()

    page.get_by_role("row", name="A100 80GB · 2").get_by_role("link", name="Book").click()
    expect(page.get_by_label("A100 80GB · 2")).to_be_checked()
    page.get_by_label("Purpose").fill("by hand")
    page.get_by_role("button", name="Book", exact=True).click()

    expect(page.locator(".note.ok")).to_contain_text("Booked")
    booking = Booking.objects.get(owner=people["alice"])
    assert booking.purpose == "by hand"
    assert booking.end - booking.start == timedelta(hours=2)


def test_extend_and_release_from_ones_own_list(visit, people, devices):
    now = clock.now()
    running = build.booking(
        devices[0],
        owner=people["alice"],
        start=now - timedelta(hours=1),
        end=now + timedelta(hours=1),
    )
    page = visit(people["alice"], "/bookings/")
    expect(page.locator("[data-ends]")).to_contain_text("ends in")

    page.get_by_role("button", name="Extend 1 h").click()
    expect(page.get_by_text("Extended")).to_be_visible()
    running.refresh_from_db()
    assert running.end > now + timedelta(hours=2) - timedelta(minutes=1)

    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Release now").click()
    expect(page.get_by_text("The devices are free for others")).to_be_visible()
    running.refresh_from_db()
    assert running.end < clock.now()


def test_an_empty_site_says_what_to_do(visit, people):
    page = visit(people["alice"], "/")
    expect(page.locator("#timeline-empty")).to_contain_text("No devices have been added yet")
    page.goto("/bookings/")
    expect(page.get_by_text("You have no bookings yet")).to_be_visible()


@pytest.fixture
def quiet_redis(redis_url):
    """No live values, before and after."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        yield
        client.flushdb()


def live(device, **fields):
    return {
        "uuid": device.uuid,
        "host": device.host.name,
        "at": instant(clock.now()),
        "health": "ok",
        "verdict": {"code": "free", "text": "Free", "since": None, "who": []},
        "booking": None,
        "utilization_percent": 0,
        "memory_used_bytes": 0,
        "memory_total_bytes": device.memory_bytes,
        "temperature_c": 41,
        "power_w": 60,
        "processes": [],
        **fields,
    }


def test_the_live_page_shows_what_hosts_measure(visit, people, devices, quiet_redis):
    livestore.publish([live(one) for one in devices], now=clock.now())
    page = visit(people["alice"], "/live/")
    card = page.locator('[data-device="SIM-1"]')
    expect(card.locator('[data-part="chip"]')).to_have_text("Free")
    waiting.until(livestore.watched)

    end = clock.now() + timedelta(hours=2)
    changed = live(
        devices[1],
        verdict={"code": "foreign_use", "text": "used by bob", "since": None, "who": ["bob"]},
        booking={"id": 1, "owner": {"username": "alice", "name": "Alice"}, "end": instant(end)},
        utilization_percent=93,
        memory_used_bytes=57 * build.GIB,
        processes=[{"pid": 7, "owner": "bob", "memory_bytes": 57 * build.GIB}],
    )
    assert livestore.publish([changed], now=clock.now()), "the page says that it is looked at"

    expect(card.locator('[data-part="chip"]')).to_have_text("Someone else")
    expect(card.locator('[data-part="says"]')).to_have_text("bob uses it unbooked (pid 7)")
    expect(card.locator('[data-part="who"]')).to_contain_text("You · until")
    expect(card.locator('[data-part="use-text"]')).to_have_text("93 %")
    expect(card.locator('[data-part="memory-text"]')).to_have_text("57 / 80 GB")
    expect(card.locator('[data-part="owners"]')).to_have_text("bob 57 GB")
    assert card.locator('[data-part="use"]').evaluate("one => one.style.width") == "93%"


def test_a_silent_host_is_marked_on_the_timeline(timeline, people, devices, quiet_redis):
    silent = {"code": "no_data", "text": "no data", "since": instant(clock.now()), "who": []}
    livestore.publish([live(one, verdict=silent) for one in devices], now=clock.now())

    alice = timeline(people["alice"])

    expect(alice.page.locator('[data-host="sim-a"]')).to_contain_text("not reporting since")


def test_filters_leave_the_rows_that_fit(timeline, people, devices, at):
    other = build.device(build.host("sim-b"), uuid="OTHER", index=0, model="RTX 4090")
    build.booking(devices[1], owner=people["alice"], start=at(0), end=at(5))
    alice = timeline(people["alice"])
    rows = alice.page.locator("[data-row]")
    expect(rows).to_have_count(5)

    alice.page.select_option("#filter-model", "RTX 4090")
    expect(rows).to_have_count(1)
    expect(alice.lane(other.uuid)).to_be_visible()
    alice.page.select_option("#filter-model", "")
    alice.page.check("#filter-mine")
    expect(rows).to_have_count(1)
    expect(alice.lane("SIM-1")).to_be_visible()
    alice.page.uncheck("#filter-mine")
    alice.page.check("#filter-free")
    expect(rows).to_have_count(4)
    alice.page.select_option("#filter-model", "RTX 4090")
    alice.page.check("#filter-mine")
    expect(alice.page.locator("#timeline-empty")).to_contain_text("No device fits")


def test_a_week_is_seven_days_wide(timeline, people, devices):
    alice = timeline(people["alice"])
    alice.page.click('[data-days="7"]')

    expect(alice.page.locator(".tl-labels b")).to_have_count(7)
    assert "days=7" in alice.page.url
