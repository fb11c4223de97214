"""Days of 23 and 25 hours, in a browser that is somewhere else."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect

from reservations import clock
from reservations.models import Booking, Rule
from tests import build

pytestmark = pytest.mark.browser


def day_of_length(hours: float, zone: str) -> date:
    """The next day on which the zone's clock makes that many hours."""
    place = ZoneInfo(zone)
    day = clock.now().astimezone(place).date() + timedelta(days=1)
    while length(day, place) != timedelta(hours=hours):
        day += timedelta(days=1)
    return day


def midnight(day: date, place: ZoneInfo) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=place).astimezone(UTC)


def length(day: date, place: ZoneInfo) -> timedelta:
    return midnight(day + timedelta(days=1), place) - midnight(day, place)


@pytest.fixture
def person_in(devices):
    # A clock change may be further ahead than people may book.
    Rule.objects.all().delete()
    return lambda zone: build.person(time_zone=zone)


@pytest.mark.parametrize(
    ("zone", "elsewhere"),
    [("Europe/Berlin", "America/New_York"), ("America/New_York", "Asia/Kolkata")],
)
@pytest.mark.parametrize("hours", [23, 25])
def test_a_day_of_a_clock_change_is_drawn_booked_and_moved_truly(
    timeline, person_in, zone, elsewhere, hours
):
    day = day_of_length(hours, zone)
    start = midnight(day, ZoneInfo(zone))
    page = timeline(person_in(zone), day=day, timezone_id=elsewhere)
    assert page.page.locator(".tl-grid > div").count() == hours

    page.drag(page.point("SIM-0", 1, hours), page.point("SIM-0", 4, hours))
    expect(page.verdict).to_contain_text("Free")
    expect(page.dialog.locator("[type=submit]")).to_have_text("Book 3 h")
    page.confirm()
    expect(page.booking("SIM-0", "You")).to_be_visible()
    booking = Booking.objects.get()
    assert booking.start == start + timedelta(hours=1)
    assert booking.end == start + timedelta(hours=4)

    page.drag(page.point("SIM-0", 2, hours), page.point("SIM-0", 5, hours))
    expect(page.toast).to_contain_text("Moved")
    booking.refresh_from_db()
    assert booking.start == start + timedelta(hours=4)
    assert booking.end - booking.start == timedelta(hours=3)
    left, width = page.place(page.booking("SIM-0"))
    assert left == pytest.approx(100 * 4 / hours, abs=0.01)
    assert width == pytest.approx(100 * 3 / hours, abs=0.01)


def test_the_repeated_hour_shows_its_offsets(timeline, person_in):
    day = day_of_length(25, "Europe/Berlin")
    page = timeline(person_in("Europe/Berlin"), day=day, timezone_id="Asia/Kolkata")

    assert page.page.locator(".tl-labels i.repeated").all_text_contents() == ["02 +2", "02 +1"]
    expect(page.page.locator("#zone")).to_contain_text("Europe/Berlin")
    expect(page.page.locator("#zone")).to_contain_text("your device is in Asia/Calcutta")


def test_a_clock_that_changes_by_half_an_hour(timeline, person_in):
    zone = "Australia/Lord_Howe"
    day = day_of_length(24.5, zone)
    start = midnight(day, ZoneInfo(zone))
    page = timeline(person_in(zone), day=day, timezone_id="Asia/Kolkata")

    page.drag(page.point("SIM-0", 1, 24.5), page.point("SIM-0", 3.5, 24.5))
    page.confirm()

    expect(page.booking("SIM-0", "You")).to_be_visible()
    booking = Booking.objects.get()
    assert (booking.start - start, booking.end - start) == (
        timedelta(hours=1),
        timedelta(hours=3.5),
    )


def test_a_time_that_does_not_exist_is_refused_in_the_dialog(timeline, person_in):
    day = day_of_length(23, "Europe/Berlin")
    page = timeline(person_in("Europe/Berlin"), day=day, timezone_id="America/New_York")
    page.draw("SIM-0", 10, 12)

    page.page.fill("#book-start", f"{day}T02:30")

    expect(page.page.locator("#book-start-note")).to_contain_text(
        "02:30 does not exist on that day"
    )
    expect(page.dialog.locator("[type=submit]")).to_be_disabled()


def test_of_a_time_that_comes_twice_both_are_offered(timeline, person_in):
    day = day_of_length(25, "Europe/Berlin")
    start = midnight(day, ZoneInfo("Europe/Berlin"))
    page = timeline(person_in("Europe/Berlin"), day=day, timezone_id="America/New_York")
    page.draw("SIM-0", 10, 12)

    page.page.fill("#book-start", f"{day}T02:30")
    page.page.fill("#book-end", f"{day}T04:00")
    earlier, later = page.dialog.get_by_role("radio").all()
    expect(earlier).to_be_checked()
    expect(page.dialog.locator("[type=submit]")).to_have_text("Book 2 h 30 min")
    later.check()
    # Another start keeps the duration.
    expect(page.page.locator("#book-end")).to_have_value(f"{day} 05:00")
    page.confirm()

    expect(page.booking("SIM-0", "You")).to_be_visible()
    assert Booking.objects.get().start == start + timedelta(hours=3, minutes=30)
