"""A person makes a calendar address on a page, sees it once, and can replace it."""

import re

import pytest
from django.test import Client

from tests import build

pytestmark = pytest.mark.django_db(transaction=True)


def address_on(page):
    return re.search(r"<code>http://[^/]+(/calendar/[\w-]+\.ics)</code>", page.content.decode())[1]


def test_the_address_leads_to_the_persons_bookings(static_files, signed_in):
    alice = build.user("alice")
    build.booking(owner=alice, purpose="read by a calendar", start=build.NOON)
    page = signed_in(alice).post("/bookings/calendar/")
    assert "no-store" in page.headers["Cache-Control"]
    feed = Client().get(address_on(page))
    assert feed.status_code == 200
    assert "read by a calendar" in feed.content.decode()


def test_a_new_address_ends_the_old_one(static_files, signed_in):
    alice = signed_in(build.user("alice"))
    old = address_on(alice.post("/bookings/calendar/"))
    new = address_on(alice.post("/bookings/calendar/"))
    assert Client().get(old).status_code == 404
    assert Client().get(new).status_code == 200


def test_looking_at_the_page_changes_nothing(static_files, signed_in):
    assert signed_in(build.user()).get("/bookings/calendar/").status_code == 405
