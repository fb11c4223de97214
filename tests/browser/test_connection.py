"""Broken connections: to the socket, to the server, to one's own session."""

import pytest
from playwright.sync_api import expect

from reservations.models import Booking
from tests import build

pytestmark = pytest.mark.browser


class Wire:
    """Stands between the page and the calendar socket; can be cut."""

    def __init__(self) -> None:
        self.cut = False
        self.open = []

    def route(self, page):
        page.route_web_socket("**/ws/calendar/", self._connect)

    def _connect(self, socket):
        if self.cut:
            socket.close(code=1011)
            return
        socket.connect_to_server()
        self.open.append(socket)

    def drop(self):
        self.cut = True
        for socket in self.open:
            socket.close(code=1011)


def test_a_dropped_socket_is_said_and_what_was_missed_is_fetched(timeline, people, devices, at):
    wire = Wire()
    alice = timeline(people["alice"], before=wire.route)
    bar = alice.page.locator("#stale")
    expect(bar).to_be_hidden()

    wire.drop()
    expect(bar).to_contain_text("Live updates paused")
    # Written without any announcement: only a fetch can find it.
    build.booking(devices[1], owner=people["bob"], start=at(9), end=at(13))
    expect(alice.booking("SIM-1")).to_have_count(0)

    wire.cut = False
    expect(bar).to_be_hidden(timeout=20_000)
    expect(alice.booking("SIM-1", "Bob Okafor")).to_be_visible()


def test_a_silent_socket_counts_as_dead(timeline, people, devices):
    """It stays open and says nothing: the page must not trust it."""
    opened = []
    alice = timeline(
        people["alice"],
        before=lambda page: (
            page.clock.install(),
            page.route_web_socket("**/ws/calendar/", lambda socket: opened.append(socket)),
        ),
    )
    assert len(opened) == 1

    alice.page.clock.run_for(24_000)

    for _ in range(100):
        if len(opened) > 1:
            break
        alice.page.evaluate("new Promise(requestIdleCallback)")
    assert len(opened) > 1


def test_a_session_that_ended_is_said_and_the_page_comes_back_after_signing_in(
    timeline, people, devices
):
    wire = Wire()
    alice = timeline(people["alice"], before=wire.route)
    cookies = alice.page.context.cookies()
    alice.page.context.clear_cookies()
    for socket in wire.open:
        socket.close(code=1011)
    bar = alice.page.locator("#stale")
    expect(bar).to_contain_text("You are signed out")
    expect(bar.get_by_role("link", name="Sign in")).to_be_visible()

    alice.page.context.add_cookies(cookies)
    alice.page.evaluate("dispatchEvent(new Event('online'))")
    expect(bar).to_be_hidden()


def test_an_answer_that_was_lost_does_not_book_twice(timeline, people, devices):
    alice = timeline(people["alice"])
    lost = []

    def lose(route):
        route.fetch()
        lost.append(route)
        route.abort()

    alice.page.route("**/api/v1/bookings/", lose, times=1)
    alice.draw("SIM-0", 9, 13)
    alice.page.fill("#book-purpose", "kept")
    alice.confirm()
    expect(alice.verdict).to_contain_text("did not answer")
    assert alice.page.input_value("#book-purpose") == "kept"

    alice.confirm()

    # Another key would be told that the slot is taken: by the first try.
    expect(alice.dialog).to_be_hidden()
    expect(alice.toast).to_contain_text("Booked")
    assert len(lost) == 1
    assert Booking.objects.get().purpose == "kept"


def test_signing_out_elsewhere_loses_nothing_that_was_typed(timeline, people, devices):
    alice = timeline(people["alice"])
    alice.draw("SIM-0", 9, 13)
    alice.page.fill("#book-purpose", "finetune-3")
    cookies = alice.page.context.cookies()
    alice.page.context.clear_cookies()

    alice.confirm()
    expect(alice.verdict).to_contain_text("You are signed out")
    expect(alice.verdict.get_by_role("link", name="Sign in")).to_be_visible()
    assert alice.page.input_value("#book-purpose") == "finetune-3"

    alice.page.context.add_cookies(cookies)
    alice.confirm()
    expect(alice.booking("SIM-0", "You")).to_be_visible()
