"""The next person's opening held back: known while it lasts, told with its reason, and over once it opened."""

from datetime import timedelta

import pytest

from reservations.models import AuditEntry, Device, Notice
from reservations.selectors.visible import Viewer, booking_row, calendar_row
from reservations.services import enforcement, hosts, inventory, moving, rebinding
from reservations.services.actors import BERTH, Actor
from reservations.services.wishes import Change
from tests import build
from tests.build import NOON
from tests.hosts import HOUR, MINUTE, SECOND, registered, report

pytestmark = pytest.mark.django_db
WAITING = "somebody else has to leave it first"
STUCK = "a process on the device cannot be ended; it needs attention"


@pytest.fixture
def host():
    return registered("gpu1")[0]


@pytest.fixture
def device(host):
    return build.device(host, uuid="GPU-a", index=0)


@pytest.fixture
def alice(host):
    made = build.user("alice")
    build.account(made, host)
    return made


@pytest.fixture
def booking(device, alice):
    return build.booking(device, owner=alice, hours=4)


def say(host, kind, booking, *, after=0.0, received=None, text="", **fields):
    at = NOON + timedelta(seconds=after)
    facts = {"device": "GPU-a", "booking": booking and booking.pk, "unix_name": "alice", **fields}
    one = report(kind, at=at, text=text, **facts)
    enforcement.record(host, [one], received_at=received or at + SECOND)
    if booking:
        booking.refresh_from_db()


def opening(booking, person, *, at=NOON + MINUTE):
    return booking_row(booking, viewer=Viewer.of(person), now=at)["opening"]


def test_a_delay_is_shown_with_its_reason_until_it_opened(host, booking, alice):
    assert opening(booking, alice) is None
    say(host, "delayed", booking, text=WAITING)
    assert opening(booking, alice) == {
        "state": "held_back",
        "reason": WAITING,
        "since": "2027-03-01T12:00:00Z",
    }
    say(host, "opened", booking, after=15)
    assert opening(booking, alice) is None


def test_once_it_is_stuck_the_reason_changes_and_the_beginning_does_not(host, booking, alice):
    say(host, "delayed", booking, text=WAITING)
    say(host, "delayed", booking, after=30, text=STUCK)
    assert opening(booking, alice)["reason"] == STUCK
    assert opening(booking, alice)["since"] == "2027-03-01T12:00:00Z"


def test_a_booking_of_two_devices_is_open_when_both_are(host, device, alice):
    build.device(host, uuid="GPU-b")
    booking = build.booking(*Device.objects.all(), owner=alice)
    for uuid in ("GPU-a", "GPU-b"):
        say(host, "delayed", booking, device=uuid, text=WAITING)
    say(host, "opened", booking, after=5, device="GPU-a")
    assert opening(booking, alice) is not None
    say(host, "opened", booking, after=9, device="GPU-b")
    assert opening(booking, alice) is None


def test_an_old_delay_that_waited_in_a_spool_changes_nothing(host, booking, alice):
    say(host, "opened", booking, after=15)
    say(host, "delayed", booking, after=1, received=NOON + MINUTE, text=WAITING)
    assert opening(booking, alice, at=NOON + 2 * MINUTE) is None


def test_a_device_that_was_replaced_holds_nothing_back(host, device, booking, alice):
    spare = build.device(host, uuid="GPU-b", index=1)
    say(host, "delayed", booking, text=WAITING)
    rebinding.take_over(booking.pk, device, spare, actor=BERTH, now=NOON + MINUTE)
    booking.refresh_from_db()
    assert opening(booking, alice) is None
    say(host, "delayed", booking, after=30, received=NOON + 2 * MINUTE, text=WAITING)
    assert opening(booking, alice) is None


def test_a_booking_that_was_moved_away_at_its_start_is_not_held_back_by_what_was(
    host, booking, alice
):
    build.device(host, uuid="GPU-b", index=1)
    say(host, "delayed", booking, after=-1, received=NOON - SECOND, text=WAITING)
    later = Change(start=NOON + HOUR, end=NOON + 5 * HOUR)
    moving.move(booking.pk, later, actor=build.actor(alice), now=NOON - SECOND)
    booking.refresh_from_db()
    assert opening(booking, alice, at=NOON + HOUR) is None


def test_after_its_end_a_booking_that_never_opened_is_held_back_no_more(host, booking, alice):
    say(host, "delayed", booking, text=WAITING)
    assert opening(booking, alice, at=NOON + 4 * HOUR) is None


def test_nothing_is_held_back_on_a_host_that_enforces_no_more(host, booking, alice):
    say(host, "delayed", booking, text=WAITING)
    hosts.set_mode(host, mode="observe", settings={}, actor=BERTH, now=NOON + MINUTE)
    booking.refresh_from_db()
    assert opening(booking, alice, at=NOON + MINUTE) is None
    say(host, "delayed", booking, after=59, text=WAITING)
    assert opening(booking, alice, at=NOON + MINUTE) is None


@pytest.mark.parametrize(
    ("who", "reads"),
    [("owner", True), ("teammate", True), ("operator", True), ("stranger", False)],
)
def test_whoever_may_read_the_booking_whole_reads_why(host, device, alice, who, reads):
    people = {
        "owner": alice,
        "teammate": build.user(),
        "operator": build.operator(),
        "stranger": build.user(),
    }
    team = build.team(alice, people["teammate"])
    booking = build.booking(device, owner=alice, team=team)
    say(host, "delayed", booking, text=WAITING)
    viewer = Viewer.of(people[who])
    assert (calendar_row(booking, viewer=viewer)["opening"] is not None) == reads
    assert (opening(booking, people[who]) is not None) == reads


def test_the_person_is_told_why_and_that_it_is_over(host, booking, alice):
    say(host, "delayed", booking, text=STUCK)
    say(host, "opened", booking, after=15)
    assert [one.text for one in Notice.objects.filter(user=alice).order_by("id")] == [
        f"Test 80GB · 0 on gpu1 is not open for you yet: {STUCK}. "
        "It opens by itself as soon as that is over; book another device if you cannot wait.",
        "Test 80GB · 0 on gpu1 is open for you now.",
    ]


def test_an_opening_in_time_is_no_news(host, booking, alice):
    say(host, "opened", booking)
    assert not Notice.objects.filter(user=alice).exists()


class TestADeviceThatNeedsAttention:
    @pytest.fixture(autouse=True)
    def stuck(self, host, device):
        say(host, "stuck", None, unix_name="bob")

    def state(self, device):
        device.refresh_from_db()
        return device.state

    def test_is_fine_again_once_what_was_stuck_is_gone(self, host, device):
        say(host, "gone", None, after=60, unix_name="bob")
        assert self.state(device) == "ok"
        assert AuditEntry.objects.get(verb="device_recovered").device == device

    def test_is_not_while_another_process_is_stuck(self, host, device):
        say(host, "stuck", None, after=5, unix_name="eve")
        say(host, "gone", None, after=60, unix_name="bob")
        assert self.state(device) == "needs_attention"
        say(host, "gone", None, after=90, unix_name="eve")
        assert self.state(device) == "ok"

    def test_is_not_because_somebody_else_left(self, host, device):
        say(host, "gone", None, after=60, unix_name="carol")
        assert self.state(device) == "needs_attention"

    def test_is_not_where_something_else_is_the_matter(self, host, device):
        Device.objects.update(state_since=NOON + HOUR)
        say(host, "gone", None, after=60, unix_name="bob")
        assert self.state(device) == "needs_attention"

    def test_is_fine_where_the_news_that_it_was_stuck_comes_after_the_news_that_it_is_gone(
        self, host
    ):
        other = build.device(host, uuid="GPU-b")
        say(host, "gone", None, after=60, unix_name="bob", device="GPU-b")
        late = {"received": NOON + 2 * MINUTE, "unix_name": "bob", "device": "GPU-b"}
        say(host, "stuck", None, after=10, **late)
        assert self.state(other) == "ok"

    def test_owes_nothing_to_what_was_before_an_operator_marked_it_as_fine(self, host, device):
        actor = Actor.of(build.operator("admin"), source="web")
        inventory.mark_fine("gpu1", "GPU-a", actor=actor, now=NOON + MINUTE)
        say(host, "stuck", None, after=100, unix_name="eve")
        assert self.state(device) == "needs_attention"
        say(host, "gone", None, after=160, unix_name="eve")
        assert self.state(device) == "ok"

    def test_is_fine_when_an_operator_says_so(self, host, device):
        admin = build.operator("admin")
        actor = Actor.of(admin, source="web")
        for _ in range(2):
            inventory.mark_fine("gpu1", "GPU-a", actor=actor, now=NOON + HOUR)
        assert self.state(device) == "ok"
        assert AuditEntry.objects.get(verb="device_fine").actor == admin


@pytest.mark.parametrize(
    "kind",
    ["granted_by_hand", "held", "resumed", "yielded", "taken_back", "adopted", "released_host",
     "drift_given_up", "hold_fire"],
)  # fmt: skip
def test_what_root_says_by_hand_and_what_needs_a_hand_is_told_to_operators_and_in_the_trail(
    host, device, kind
):
    admin = build.operator()
    say(host, kind, None, unix_name="eve", text="until four")
    (notice,) = Notice.objects.filter(user=admin)
    assert notice.text.endswith("until four")
    assert "gpu1" in notice.text
    assert "{" not in notice.text
    assert AuditEntry.objects.get(verb=kind).why == "until four"
