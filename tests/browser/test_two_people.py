"""The main path with two browsers open."""

import re
import time

import pytest
from playwright.sync_api import expect

from reservations.models import Booking

pytestmark = pytest.mark.browser


def test_a_booking_dragged_by_one_is_seen_by_the_other_without_reload(
    timeline, people, devices, at
):
    alice, bob = timeline(people["alice"]), timeline(people["bob"])

    alice.draw("SIM-0", 9, 13)
    expect(alice.verdict).to_contain_text("Free")
    alice.confirm()
    expect(alice.booking("SIM-0", "You")).to_be_visible()
    saved = time.monotonic()
    expect(bob.booking("SIM-0", "Alice Weber")).to_be_visible(timeout=1_000)

    assert time.monotonic() - saved < 1
    booking = Booking.objects.get()
    assert (booking.start, booking.end) == (at(9), at(13))
    assert booking.owner == people["alice"]
    expect(alice.booking("SIM-0")).to_have_class(re.compile(r"\bmine\b"))
    expect(bob.booking("SIM-0")).not_to_have_class(re.compile(r"\bmine\b"))


def test_a_taken_slot_is_refused_with_name_and_end_and_the_next_one_books_with_one_click(
    timeline, people, devices, at
):
    alice, bob = timeline(people["alice"]), timeline(people["bob"])
    for device in ("SIM-0", "SIM-1", "SIM-2", "SIM-3"):
        alice.draw(device, 9, 13)
        alice.confirm()
        expect(alice.booking(device, "You")).to_be_visible()
    expect(bob.booking("SIM-3", "Alice Weber")).to_be_visible()

    bob.drag(bob.point("SIM-0", 14), bob.point("SIM-0", 11))
    expect(bob.verdict).to_contain_text("is booked by Alice Weber until")
    expect(bob.verdict).to_contain_text("13:00")
    bob.verdict.locator("[data-use]").click()

    expect(bob.booking("SIM-0", "You").or_(bob.booking("SIM-1", "You")).first).to_be_visible()
    booking = Booking.objects.get(owner=people["bob"])
    assert booking.start >= at(13)
    assert (booking.end - booking.start).total_seconds() == 3 * 3600


def test_the_server_refuses_what_the_page_could_not_know(timeline, people, devices, at):
    """Bob's page is deaf, so only the server's answer tells him."""
    alice = timeline(people["alice"])
    bob = timeline(
        people["bob"], before=lambda page: page.route_web_socket("**/ws/**", lambda _: None)
    )
    alice.draw("SIM-0", 9, 13)
    bob.draw("SIM-0", 10, 12)
    expect(bob.verdict).to_contain_text("Free")
    alice.confirm()
    expect(alice.booking("SIM-0", "You")).to_be_visible()

    bob.confirm()

    expect(bob.verdict).to_contain_text("Alice Weber")
    expect(bob.dialog).to_be_visible()
    assert Booking.objects.count() == 1


def test_a_drag_over_rows_books_them_as_one(timeline, people, devices, at):
    alice = timeline(people["alice"])

    alice.draw("SIM-1", 14, 16, to="SIM-3")
    alice.page.fill("#book-purpose", "sweep 😀")
    alice.confirm()

    expect(alice.booking("SIM-2", "You")).to_be_visible()
    booking = Booking.objects.get()
    assert [one.device.uuid for one in booking.allocations.order_by("device__index")] == [
        "SIM-1",
        "SIM-2",
        "SIM-3",
    ]
    assert booking.purpose == "sweep 😀"


def test_next_free_slot_offers_one_that_is_free(timeline, people, devices):
    alice = timeline(people["alice"])

    alice.page.click("#next-free")
    expect(alice.verdict).to_contain_text("Free")
    alice.confirm()

    expect(alice.toast).to_contain_text("Booked")
    assert Booking.objects.get().owner == people["alice"]


def test_a_change_by_the_other_reaches_an_open_page(timeline, people, devices, at):
    alice, bob = timeline(people["alice"]), timeline(people["bob"])
    alice.draw("SIM-0", 9, 13)
    alice.confirm()
    shown = bob.booking("SIM-0", "Alice Weber")
    expect(shown).to_be_visible()

    alice.page.once("dialog", lambda dialog: dialog.accept())
    alice.booking("SIM-0", "You").focus()
    alice.page.keyboard.press("Delete")

    expect(shown).to_have_count(0)
    assert Booking.objects.get().state == Booking.State.CANCELLED


def test_bookings_of_others_cannot_be_dragged(timeline, people, devices, at):
    alice, bob = timeline(people["alice"]), timeline(people["bob"])
    alice.draw("SIM-0", 9, 13)
    alice.confirm()
    expect(bob.booking("SIM-0", "Alice Weber")).to_be_visible()

    bob.drag(bob.point("SIM-0", 10), bob.point("SIM-0", 14))

    assert Booking.objects.get().start == at(9)
    assert bob.place(bob.booking("SIM-0")) == (37.5, 16.667)
