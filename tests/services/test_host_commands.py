"""Setting up a host from the command line."""

import re
from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from reservations import clock
from reservations.models import Allocation, Device, Host, Site
from reservations.services import hosts, plans
from reservations.services.inventory import store_inventory
from tests import build
from tests.build import NOON
from tests.hosts import inventory, registered

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def run(*words):
    output = StringIO()
    call_command(*words, stdout=output)
    return output.getvalue()


def test_add_host_prints_the_token_and_the_command_that_starts_its_worker():
    text = run("add_host", "gpu1", "--mode", "warn", "--set", "grace_s=5", "unbooked_use=allow")
    host = Host.objects.get(name="gpu1")
    assert (host.mode, host.settings) == ("warn", {"grace_s": 5, "unbooked_use": "allow"})
    (token,) = set(re.findall(r"berth_host_[\w-]+", text))
    assert hosts.host_of_token(token) == host
    assert (
        f"BERTH_HOST_NAME=gpu1 BERTH_URL=http://127.0.0.1:8000 BERTH_HOST_TOKEN={token} "
        "python -m workers.host run"
    ) in text


@pytest.mark.parametrize(
    "words", [["gpu1"], ["no name"], ["gpu2", "--set", "grace"], ["gpu2", "--set", "x=1"]]
)
def test_add_host_says_what_is_wrong_and_adds_nothing(words):
    registered("gpu1")
    with pytest.raises(CommandError):
        run("add_host", *words)
    assert Host.objects.count() == 1


def test_a_lost_token_is_replaced():
    host, old = registered("gpu1")
    text = run("add_host", "gpu1", "--rotate")
    (token,) = set(re.findall(r"berth_host_[\w-]+", text))
    assert hosts.host_of_token(token) == host
    assert hosts.host_of_token(old) is None
    with pytest.raises(CommandError, match="no host gpu2"):
        run("add_host", "gpu2", "--rotate")


def test_devices_are_enabled_one_by_one_or_all():
    host, _ = registered("gpu1")
    assert "not named any devices yet" in run("enable_devices", "gpu1", "--all")
    store_inventory(host, inventory("GPU-a", "GPU-b"), now=NOON)
    run("enable_devices", "gpu1", "GPU-a")
    assert Device.objects.get(bookable=True).uuid == "GPU-a"
    assert "GPU-b" in run("enable_devices", "gpu1", "--all")
    assert Device.objects.filter(bookable=True, managed_by="berth").count() == 2


@pytest.mark.parametrize(
    "words", [["gpu2", "--all"], ["gpu1"], ["gpu1", "GPU-x"], ["gpu1", "GPU-a", "--all"]]
)
def test_enable_devices_says_what_is_wrong(words):
    registered("gpu1")
    with pytest.raises(CommandError):
        run("enable_devices", *words)


def cards():
    host = build.host()
    return build.device(host), build.device(host, bookable=False, managed_by="none")


def test_the_bookings_of_a_replaced_card_move_to_the_new_one():
    old, new = cards()
    booking = build.booking(old, start=clock.now() + HOUR)

    text = run("replace_device", old.uuid, new.uuid)

    assert text == f"{new.uuid} has taken the place of {old.uuid}, which is retired.\n"
    assert Allocation.objects.get(booking=booking, holds=True).device == new
    old.refresh_from_db()
    assert old.state == Device.State.RETIRED


def test_a_booking_that_clashes_on_the_new_card_is_named():
    old, new = cards()
    booking = build.booking(old, start=clock.now() + HOUR)
    build.booking(new, start=clock.now() + HOUR)

    text = run("replace_device", old.uuid, new.uuid)

    assert f"Booking {booking.pk} could not move: {new.uuid} is booked by somebody else" in text


@pytest.mark.parametrize(
    ("by", "why"), [("GPU-x", "There is no device GPU-x"), (None, "cannot replace itself")]
)
def test_replace_device_says_what_is_wrong_and_retires_nothing(by, why):
    old, _ = cards()

    with pytest.raises(CommandError, match=why):
        run("replace_device", old.uuid, by or old.uuid)

    old.refresh_from_db()
    assert old.state != Device.State.RETIRED


def test_a_new_epoch_makes_hosts_accept_an_older_database():
    before = plans.plan_epoch()
    text = run("new_plan_epoch")
    assert plans.plan_epoch() == Site.objects.get().plan_epoch
    assert plans.plan_epoch() in text
    assert before not in text
