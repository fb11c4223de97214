"""What everybody must be able to read and reach: contrast, names, roles, narrow screens, fingers."""

import pytest
from django.conf import settings
from playwright.sync_api import expect

from reservations import clock
from reservations.models import Booking
from tests import build

pytestmark = pytest.mark.browser
AXE = settings.NODE_MODULES / "axe-core" / "axe.min.js"
_RUN = """async () => {
  const found = await axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']});
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((node) => node.html).join(' | ')}`);
}"""
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True, "is_mobile": True}


def violations(page):
    page.add_script_tag(path=AXE)
    return page.evaluate(_RUN)


@pytest.fixture
def filled(people, devices, at):
    """A day with everything that can be drawn on it."""
    build.booking(devices[0], owner=people["alice"], start=at(9), end=at(13), purpose="finetune")
    build.booking(devices[1], owner=people["bob"], start=at(2), end=at(12))
    long = build.person(display_name="王小明与一个非常非常长的名字 " * 4)
    build.booking(devices[2], owner=long, start=at(1), end=at(2))
    build.booking(
        devices[3], owner=people["admin"], start=at(3), end=at(9), kind=Booking.Kind.MAINTENANCE
    )
    build.booking(
        devices[1], owner=people["bob"], start=at(14), end=at(15), state=Booking.State.PENDING
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_timeline_and_its_dialog_have_no_barriers(timeline, people, filled, scheme):
    alice = timeline(people["alice"], color_scheme=scheme, bypass_csp=True)
    assert violations(alice.page) == []

    alice.draw("SIM-2", 10, 12)
    expect(alice.verdict).to_contain_text("Free")
    assert violations(alice.page) == []

    alice.page.keyboard.press("Escape")
    alice.draw("SIM-1", 13, 11)
    expect(alice.verdict).to_contain_text("Bob Okafor")
    assert violations(alice.page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", ["/bookings/", "/live/", "/bookings/new/", "/bookings/{id}/"])
def test_the_other_pages_have_no_barriers(visit, people, filled, scheme, path):
    booking = Booking.objects.get(owner=people["alice"])
    page = visit(people["alice"], path.format(id=booking.pk), color_scheme=scheme, bypass_csp=True)
    assert violations(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_sign_in_page_has_no_barriers(visit, people, scheme):
    page = visit(people["alice"], "/", color_scheme=scheme, bypass_csp=True)
    page.context.clear_cookies()
    page.goto("/accounts/login/")
    assert violations(page) == []


@pytest.mark.parametrize("path", ["/", "/bookings/", "/live/", "/bookings/new/"])
def test_a_phone_never_scrolls_sideways(visit, people, filled, path):
    page = visit(people["alice"], path, **PHONE)
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_on_a_phone_each_lane_has_the_whole_width_and_a_rested_finger_books(
    timeline, people, devices, at
):
    alice = timeline(people["alice"], **PHONE)
    box = alice.lane("SIM-1").bounding_box()
    assert box is not None
    assert box["width"] > 350
    finger = alice.page.context.new_cdp_session(alice.page)

    def touch(kind, *point):
        points = [{"x": point[0], "y": point[1]}] if point else []
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    (x, y), (end, _) = alice.point("SIM-1", 6), alice.point("SIM-1", 12)
    touch("touchStart", x, y)
    expect(alice.page.locator(".bk.draft")).to_be_visible()
    for step in range(1, 7):
        touch("touchMove", x + (end - x) * step / 6, y)
    touch("touchEnd")
    expect(alice.dialog).to_be_visible()
    alice.confirm()

    expect(alice.booking("SIM-1", "You")).to_be_visible()
    booking = Booking.objects.get()
    assert (booking.start, booking.end) == (at(6), at(12))


def test_a_swipe_scrolls_and_books_nothing(timeline, people, devices):
    alice = timeline(people["alice"], **{**PHONE, "viewport": {"width": 390, "height": 400}})
    finger = alice.page.context.new_cdp_session(alice.page)
    alice.page.evaluate("window.scrollTo(0, 200)")
    x, y = alice.point("SIM-0", 12)

    points = [(x, y - step * 20) for step in range(6)]
    for kind, (px, py) in zip(["touchStart"] + ["touchMove"] * 5, points, strict=True):
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": px, "y": py}]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    alice.page.wait_for_function("window.scrollY > 200")
    expect(alice.dialog).to_be_hidden()
    assert not Booking.objects.exists()


def test_nothing_on_the_pages_breaks_the_content_security_policy(visit, people, filled):
    complaints = []

    def listen(page):
        page.on(
            "console",
            lambda one: complaints.append(one.text) if "Content Security" in one.text else None,
        )

    for path in ("/", "/live/", "/bookings/", "/bookings/new/", "/api/docs/"):
        page = visit(people["alice"], path, before=listen)
        page.wait_for_load_state("networkidle")
    assert complaints == []


def test_the_now_line_moves_with_the_clock(timeline, people, devices):
    now = clock.now()
    alice = timeline(people["alice"], day="today", before=lambda page: page.clock.install(time=now))
    label = alice.page.locator(".tl-now-label")
    before = label.text_content()

    alice.page.clock.run_for(120_000)

    expect(label).not_to_have_text(before or "")


def test_without_a_chosen_day_the_axis_stays_three_hours_behind_now(timeline, people, devices):
    now = clock.now()
    alice = timeline(people["alice"], day="today", before=lambda page: page.clock.install(time=now))
    line = alice.page.locator(".tl-now")
    label = alice.page.locator(".tl-now-label")

    def hours_before_now():
        return float(line.evaluate("one => parseFloat(one.style.left)")) * 24 / 100

    assert 3 <= hours_before_now() < 4
    before = label.text_content()
    alice.page.clock.fast_forward("02:00:00")
    expect(label).not_to_have_text(before or "")
    assert 3 <= hours_before_now() < 4

    alice.page.locator("#later").click()
    expect(line).to_be_hidden()
    alice.page.locator("#today").click()
    expect(line).to_be_visible()
    assert 3 <= hours_before_now() < 4


def test_a_day_is_typed_as_it_is_shown(timeline, people, devices):
    alice = timeline(people["alice"])
    field, head = alice.page.locator("#day"), alice.page.locator(".tl-labels b")

    field.fill("2027-03-28")
    field.press("Enter")
    expect(head).to_have_text(["Sun 28 Mar"])
    field.fill("31.3.")
    field.press("Enter")
    expect(field).to_have_value("2027-03-28")
    alice.page.locator(".day-field .pick").fill("2027-03-30")
    expect(head).to_have_text(["Tue 30 Mar"])
