"""Moving, resizing and giving up one's own bookings, by pointer and by keyboard."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from reservations import clock
from reservations.core.period import next_on_grid
from reservations.models import Booking
from tests import build

pytestmark = pytest.mark.browser


@pytest.fixture
def booked(people, devices, at):
    return build.booking(devices[0], owner=people["alice"], start=at(9), end=at(13))


def test_a_drag_moves_a_booking_and_undo_moves_it_back(timeline, people, booked, at):
    alice = timeline(people["alice"])

    alice.drag(alice.point("SIM-0", 10), alice.point("SIM-0", 12))
    expect(alice.toast).to_contain_text("Moved")
    booked.refresh_from_db()
    assert (booked.start, booked.end) == (at(11), at(15))

    alice.toast.get_by_role("button", name="Undo").click()
    expect(alice.toast).to_contain_text("Moved back")
    booked.refresh_from_db()
    assert (booked.start, booked.end) == (at(9), at(13))
    assert booked.revision == 3


def test_a_drag_to_another_row_takes_the_other_device(timeline, people, booked, at):
    alice = timeline(people["alice"])

    alice.drag(alice.point("SIM-0", 10), alice.point("SIM-2", 10))

    expect(alice.toast).to_contain_text("Moved")
    expect(alice.booking("SIM-2", "You")).to_be_visible()
    expect(alice.booking("SIM-0")).to_have_count(0)
    held = Booking.objects.get().allocations.filter(holds=True)
    assert [one.device.uuid for one in held] == ["SIM-2"]


def test_an_edge_resizes(timeline, people, booked, at):
    alice = timeline(people["alice"])
    x, y = alice.point("SIM-0", 13)

    alice.drag((x - 2, y), alice.point("SIM-0", 15))

    expect(alice.toast).to_contain_text("Moved")
    booked.refresh_from_db()
    assert (booked.start, booked.end) == (at(9), at(15))


def test_escape_ends_a_drag_without_a_change(timeline, people, booked, at):
    alice = timeline(people["alice"])
    mouse = alice.page.mouse
    mouse.move(*alice.point("SIM-0", 10))
    mouse.down()
    mouse.move(*alice.point("SIM-0", 15), steps=4)
    expect(alice.booking("SIM-0")).to_have_class(re.compile("dragging"))

    alice.page.keyboard.press("Escape")
    mouse.up()

    expect(alice.booking("SIM-0")).not_to_have_class(re.compile("dragging"))
    assert alice.place(alice.booking("SIM-0")) == (37.5, 16.667)
    booked.refresh_from_db()
    assert booked.revision == 1


def test_a_move_onto_somebody_goes_back_and_outlines_who_is_there(
    timeline, people, devices, booked, at
):
    build.booking(devices[0], owner=people["bob"], start=at(14), end=at(16))
    alice = timeline(people["alice"])

    alice.drag(alice.point("SIM-0", 10), alice.point("SIM-0", 13))

    expect(alice.toast).to_contain_text("Bob Okafor")
    expect(alice.toast.get_by_role("button", name="Move to")).to_be_visible()
    expect(alice.booking("SIM-0", "Bob Okafor")).to_have_class(re.compile("in-the-way"))
    assert alice.place(alice.booking("SIM-0", "You")) == (37.5, 16.667)
    booked.refresh_from_db()
    assert booked.start == at(9)


def test_a_stale_page_learns_how_the_booking_is_now(timeline, people, booked, at):
    deaf = timeline(
        people["alice"], before=lambda page: page.route_web_socket("**/ws/**", lambda _: None)
    )
    # Also the fetch that follows the opening of a socket is over.
    deaf.page.wait_for_load_state("networkidle")
    Booking.objects.update(revision=5, end=at(12), planned_end=at(12))
    booked.allocations.update(end=at(12))

    deaf.drag(deaf.point("SIM-0", 10), deaf.point("SIM-0", 12))

    expect(deaf.toast).to_contain_text("changed this booking in the meantime")
    assert deaf.place(deaf.booking("SIM-0")) == (37.5, 12.5)
    booked.refresh_from_db()
    assert booked.start == at(9)


def test_a_running_booking_only_lets_its_end_move(timeline, people, devices):
    start = clock.now() - timedelta(hours=1)
    end = next_on_grid(clock.now() + timedelta(hours=3), timedelta(minutes=15))
    running = build.booking(devices[0], owner=people["alice"], start=start, end=end)
    alice = timeline(people["alice"], day="today")

    box = alice.booking("SIM-0", "You")
    box.focus()
    alice.page.keyboard.press("Alt+ArrowRight")
    alice.page.keyboard.press("Alt+Shift+ArrowRight")

    expect(alice.toast).to_contain_text("Moved")
    running.refresh_from_db()
    assert running.start == start
    assert running.end == end + timedelta(minutes=15)


def test_the_keyboard_books_moves_resizes_and_cancels(timeline, people, devices, at):
    alice = timeline(people["alice"])
    keys = alice.page.keyboard

    alice.lane("SIM-1").focus()
    keys.press("ArrowRight")
    for _ in range(8 * 4):
        keys.press("ArrowRight")
    keys.press("Shift+ArrowRight")
    keys.press("Enter")
    expect(alice.verdict).to_contain_text("Free")
    alice.page.locator("#book-purpose").press("Enter")
    box = alice.booking("SIM-1", "You")
    expect(box).to_be_visible()
    booking = Booking.objects.get()
    assert (booking.start, booking.end) == (at(8), at(9) + timedelta(minutes=15))

    expect(box).to_be_focused()
    keys.press("Alt+ArrowRight")
    keys.press("Alt+ArrowRight")
    expect(alice.toast).to_contain_text("Moved")
    booking.refresh_from_db()
    assert booking.start == at(8) + timedelta(minutes=30)

    expect(box).to_be_focused()
    keys.press("Alt+Shift+ArrowLeft")
    expect(alice.toast).to_contain_text("09:30")
    booking.refresh_from_db()
    assert booking.end == at(9) + timedelta(minutes=30)

    alice.page.once("dialog", lambda dialog: dialog.accept())
    keys.press("Delete")
    expect(box).to_have_count(0)
    booking.refresh_from_db()
    assert booking.state == Booking.State.CANCELLED


def test_enter_on_a_booking_opens_its_page(timeline, people, booked):
    alice = timeline(people["alice"])

    alice.booking("SIM-0").focus()
    alice.page.keyboard.press("Enter")

    alice.page.wait_for_url(f"**/bookings/{booked.pk}/")
    expect(alice.page.get_by_role("heading", name="What happened")).to_be_visible()
