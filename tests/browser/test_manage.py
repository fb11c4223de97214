"""What an operator does on the manage page, and what everybody else sees of it at once."""

import re
from datetime import timedelta

import pytest
import redis
from playwright.sync_api import expect

from reservations import clock
from reservations.core.wire import ProcessUse, Sample
from reservations.models import Booking, HostStatus
from reservations.services import enforcement, usage
from tests import build
from tests.browser.test_looks import PHONE, violations
from tests.hosts import report, samples

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def quiet_redis(redis_url):
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        yield
        client.flushdb()


@pytest.fixture
def crowd(transactional_db):
    """A host with twelve unbooked jobs of nine people, as its heartbeat tells."""
    host = build.host("gpu1", mode="warn")
    people = [build.person(f"user{n}", display_name=f"Person {n}") for n in range(9)]
    devices = [build.device(host, uuid=f"GPU-{n}", index=n, model="A100") for n in range(12)]
    now = clock.now()
    usage.heartbeat(
        host,
        samples(*(_used(device, people[n % 9], n) for n, device in enumerate(devices)), at=now),
        now=now,
    )
    return host, people, devices


def _used(device, person, n):
    now = clock.now()
    process = ProcessUse(
        pid=4000 + n,
        uid=2000 + n % 9,
        unix_name=person.username,
        memory_bytes=build.GIB,
        started=now - timedelta(hours=n + 1),
    )
    return Sample(uuid=device.uuid, at=now, processes=(process,), utilization_percent=60.0)


def test_the_switch_to_enforce_first_names_all_nine_and_their_devices(visit, people, crowd):
    host, users, devices = crowd
    soon = clock.now() + timedelta(hours=2)
    build.booking(devices[4], owner=people["alice"], start=soon)
    page = visit(people["admin"], "/")
    page.get_by_role("link", name="Manage").click()
    page.get_by_role("link", name="gpu1", exact=True).click()
    page.get_by_role("link", name="Enforce…").click()

    expect(
        page.get_by_role("heading", name="9 people are on its devices without a booking")
    ).to_be_visible()
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(12)
    for n, device in enumerate(devices):
        row = rows.filter(has_text=f"{4000 + n}")
        expect(row).to_contain_text(users[n % 9].name)
        expect(row).to_contain_text(device.name)
    expect(rows.first).to_contain_text("Alice Weber has booked it")
    expect(rows.first).to_contain_text("A100 · 4")
    # Eleven at once, three days from now: more than the budget.
    expect(page.get_by_text("raise the kill budget if you mean it")).to_be_visible()
    host.refresh_from_db()
    assert host.mode == "warn"

    page.get_by_role("button", name="Switch to enforce").click()
    expect(page.get_by_text("gpu1 enforces.")).to_be_visible()
    host.refresh_from_db()
    assert host.mode == "enforce"


def test_a_hold_is_seen_at_once_in_other_browsers_and_so_is_its_end(
    visit, timeline, people, devices
):
    bobs = timeline(people["bob"], day="today")
    alices = visit(people["alice"], "/live/")
    second = visit(people["admin"], "/manage/")
    host_head = bobs.page.locator('[data-host="sim-a"]')
    card = alices.locator('[data-device="SIM-0"]')
    admin = visit(people["admin"], "/manage/hosts/sim-a/")

    admin.get_by_label("Reason").fill("new driver")
    admin.get_by_label("For").select_option("4 hours")
    admin.get_by_role("button", name="Hold sim-a").click()

    expect(admin.locator("#held")).to_contain_text("new driver")
    expect(second.locator("#held")).to_contain_text("1 host is held")
    expect(second.locator("#hosts")).to_contain_text("new driver")
    expect(host_head).to_contain_text("nothing is opened or stopped: new driver")
    expect(card).to_contain_text("nothing is opened or stopped: new driver")
    bobs.page.reload()
    expect(host_head).to_contain_text("new driver")

    second.get_by_role("button", name="Resume", exact=True).click()
    expect(second.get_by_text("sim-a acts again.")).to_be_visible()
    expect(admin.locator("#held")).not_to_contain_text("new driver")
    expect(host_head).not_to_contain_text("new driver")
    expect(card.get_by_text("new driver")).to_be_hidden()


def test_holding_all_hosts_asks_first(visit, people, devices):
    page = visit(people["admin"], "/manage/")
    page.get_by_text("Hold all hosts").first.click()
    page.get_by_label("Reason").fill("power cut")
    page.once("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("button", name="Hold all hosts").click()
    expect(page.locator("#held .note")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Hold all hosts").click()
    expect(page.locator("#held")).to_contain_text("1 host is held")


def test_what_a_host_says_of_itself_appears_without_a_reload(visit, people, crowd):
    host, _, _ = crowd
    page = visit(people["admin"], "/manage/", before=lambda page: page.clock.install())
    card = page.locator(".host-card")
    expect(card).not_to_contain_text("cannot be kept")
    problem = {"code": "spool_full", "text": "new reports cannot be kept", "device": None}
    HostStatus.objects.filter(host=host).update(health=[problem])
    page.clock.fast_forward(11_000)
    expect(card).to_contain_text("new reports cannot be kept")


def test_whoever_runs_something_unbooked_books_it_from_the_live_page(visit, people, crowd):
    _, users, _ = crowd
    strangers = visit(people["bob"], "/live/")
    expect(strangers.locator('[data-device="GPU-3"] [data-part="says"]')).to_contain_text(
        "Person 3"
    )
    expect(strangers.locator('[data-device="GPU-3"] .mine')).to_be_hidden()
    page = visit(users[3], "/live/")
    card = page.locator('[data-device="GPU-3"]')
    expect(page.locator('[data-device="GPU-4"] .mine')).to_be_hidden()
    expect(card).to_contain_text("it may be stopped when somebody else's booking begins")

    card.get_by_role("link", name="Yours? Book it from now on").click()
    expect(page.get_by_label("A100 · 3", exact=False)).to_be_checked()
    expect(page.get_by_text("what you run on it stays until the end")).to_be_visible()
    page.get_by_role("button", name="Book", exact=True).click()

    expect(page.locator(".note.ok")).to_contain_text("Booked")
    booking = Booking.objects.get(owner=users[3])
    assert booking.start <= clock.now() < booking.end
    assert timedelta(hours=2) <= booking.end - booking.start <= timedelta(hours=2, minutes=5)


def test_whoever_waits_for_a_device_sees_why_and_that_it_is_over(visit, timeline, people, devices):
    now = clock.now()
    booking = build.booking(
        devices[0], owner=people["bob"], start=now - timedelta(minutes=1), hours=3
    )
    bobs = timeline(people["bob"], day="today")
    lists = visit(people["bob"], "/live/")
    facts = {"device": "SIM-0", "booking": booking.pk, "unix_name": "bob"}
    why = "somebody else has to leave it first"

    delayed = report("delayed", at=now, text=why, **facts)
    enforcement.record(devices[0].host, [delayed], received_at=now)
    expect(bobs.booking("SIM-0")).to_have_class(re.compile("held-back"))
    expect(bobs.booking("SIM-0")).to_have_attribute(
        "title", re.compile(f"Not open yet: {re.escape(why)}")
    )
    expect(lists.locator('[data-device="SIM-0"]')).to_contain_text(why)
    page = visit(people["bob"], "/bookings/")
    expect(page.locator(".chip")).to_have_text("Not open yet")
    expect(page.locator(".booking-card")).to_contain_text(why)
    page.goto(f"/bookings/{booking.pk}/")
    expect(page.locator(".note.hold")).to_contain_text("Not open for you yet since")
    expect(page.locator(".note.hold")).to_contain_text(why)

    opened = report("opened", at=now + timedelta(seconds=15), **facts)
    enforcement.record(devices[0].host, [opened], received_at=now + timedelta(seconds=16))
    expect(bobs.booking("SIM-0")).not_to_have_class(re.compile("held-back"))
    expect(lists.locator('[data-device="SIM-0"] [data-part="opening"]')).to_be_hidden()
    page.goto("/bookings/")
    expect(page.locator(".chip")).to_have_text("Running")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/manage/", "/manage/hosts/gpu1/", "/manage/hosts/gpu1/enforce/"])
def test_the_manage_pages_have_no_barriers_and_fit_a_phone(visit, people, crowd, scheme, path):
    HostStatus.objects.update(
        health=[{"code": "stuck", "text": "processes cannot be ended: 4711", "device": "GPU-1"}]
    )
    page = visit(people["admin"], path, color_scheme=scheme, bypass_csp=True)
    assert violations(page) == []
    phone = visit(people["admin"], path, color_scheme=scheme, bypass_csp=True, **PHONE)
    assert violations(phone) == []
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
