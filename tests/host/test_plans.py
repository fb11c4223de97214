"""Which plan becomes the one that is enforced, and who is who in it. The clock is moved by hand."""

import threading
from datetime import timedelta

import msgspec
import pytest

from reservations.core.wire import Grant, HostSettings, Plan
from tests.host.clocks import NOON, Hands
from workers.host.config import LocalLimits
from workers.host.control_plane import Garbage, Unchanged
from workers.host.names import Names
from workers.host.plan_store import PlanStore
from workers.host.plans import Plans

ALICE = Grant(
    booking=1,
    device="GPU-1",
    unix_name="alice",
    start=NOON - timedelta(hours=1),
    end=NOON + timedelta(hours=1),
)


class Directory:
    """Users whose look-ups can hang or fail."""

    def __init__(self, **uids: int) -> None:
        self.uids = uids
        self.answers = threading.Event()
        self.answers.set()
        self.broken = False

    def uid_of(self, unix_name):
        self.answers.wait(20)
        if self.broken:
            raise OSError("no directory")
        return self.uids.get(unix_name)

    def name_of(self, uid):
        return None


class Answers:
    """A control plane that says what it was told to say, and remembers what it was asked."""

    def __init__(self, answer) -> None:
        self._answer = answer
        self.asked = []

    def fetch_plan(self, known_etag):
        self.asked.append(known_etag)
        return self._answer


class Desk:
    """The plans of a host with everything around them, in one folder."""

    def __init__(self, folder, *, boot="boot-1", **uids) -> None:
        self.folder = folder
        self.hands = Hands()
        self.users = Directory(**(uids or {"alice": 61001}))
        self.reports = []
        self.plans = self.restarted(boot)

    def restarted(self, boot="boot-1"):
        self.plans = Plans(
            host="sim-a",
            store=PlanStore(self.folder),
            clock=self.hands.clock(boot),
            names=Names(self.users),
            local=LocalLimits(),
            report=self.reports.append,
        )
        return self.plans

    def hear(self, *grants, after_s=0.0, **fields):
        """A plan is fetched with these grants, so many seconds later."""
        self.hands.pass_time(after_s)
        self.say(self.plan(*grants, **fields))

    def say(self, answer):
        self.plans.refresh(Answers(answer))

    def plan(self, *grants, **fields):
        now = self.hands.wall
        values = {"host": "sim-a", "epoch": "e", "as_of": now, "server_time": now, "etag": "t"}
        return Plan(**{**values, "settings": HostSettings(), "grants": grants, **fields})

    def kinds(self):
        return [report.kind for report in self.reports]

    def granted(self):
        return {(grant.booking, grant.uid) for grant in self.plans.in_force().grants}


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


def test_a_vanished_running_grant_is_kept_until_a_plan_a_minute_later_agrees(desk):
    desk.hear(ALICE)

    desk.hear(after_s=10)
    assert desk.granted() == {(1, 61001)}
    desk.hear(after_s=30)
    assert desk.granted() == {(1, 61001)}
    desk.hear(after_s=31)

    assert desk.granted() == set()
    assert desk.kinds() == ["grant_vanished"]


def test_a_vanished_grant_stays_kept_over_a_restart(desk):
    desk.hear(ALICE)
    desk.hear(after_s=10)

    desk.restarted()

    assert desk.granted() == {(1, 61001)}


def test_a_grant_that_was_ended_or_lies_ahead_is_not_kept(desk):
    later = msgspec.structs.replace(
        ALICE, booking=2, start=NOON + timedelta(hours=2), end=NOON + timedelta(hours=3)
    )
    desk.hear(ALICE, later)

    desk.hear(msgspec.structs.replace(ALICE, end=NOON), after_s=10)

    assert desk.granted() == {(1, 61001)}
    assert desk.plans.in_force().grants[0].end == NOON
    assert desk.kinds() == []


def test_a_running_grant_whose_booking_was_cancelled_ends_with_the_first_plan_that_says_so(desk):
    other = msgspec.structs.replace(ALICE, booking=2, device="GPU-2")
    desk.hear(ALICE, other)

    desk.hear(cancelled=(1,), after_s=10, etag="other")

    assert desk.granted() == {(2, 61001)}, "what nothing explains is kept"
    assert [report.booking for report in desk.reports] == [2]


def test_a_running_grant_whose_booking_got_another_device_ends_with_that_plan(desk):
    desk.hear(ALICE)

    desk.hear(msgspec.structs.replace(ALICE, device="GPU-2"), after_s=10, etag="other")

    assert [grant.device for grant in desk.plans.in_force().grants] == ["GPU-2"]
    assert desk.kinds() == []


def test_not_modified_counts_as_a_newer_plan(desk):
    desk.hear(ALICE)
    desk.hands.pass_time(50)

    desk.say(Unchanged(as_of=desk.hands.wall, server_time=desk.hands.wall))

    assert desk.plans.in_force().state.as_of == NOON + timedelta(seconds=50)
    assert desk.granted() == {(1, 61001)}


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "sim-b"},
        {"as_of": NOON - timedelta(seconds=1), "server_time": NOON - timedelta(seconds=1)},
        {"as_of": NOON + timedelta(days=9000)},
        {"wire": 99},
    ],
)
def test_a_plan_that_cannot_be_ours_changes_nothing_and_is_reported_once(desk, wrong):
    desk.hear(ALICE)

    for _ in range(2):
        with pytest.raises(Garbage):
            desk.hear(**wrong)

    assert desk.granted() == {(1, 61001)}
    assert desk.kinds() == ["plan_refused"]
    assert [problem.code for problem in desk.plans.problems()] == ["plan_refused"]
    desk.hear(ALICE, after_s=1)
    assert desk.plans.problems() == []


def test_each_process_asks_once_for_a_plan_that_names_its_host(desk):
    desk.hear(ALICE)
    desk.restarted()
    control_plane = Answers(desk.plan(ALICE))

    desk.plans.refresh(control_plane)
    desk.plans.refresh(control_plane)

    assert control_plane.asked == [None, "t"]


def test_not_modified_without_a_plan_is_refused(desk):
    with pytest.raises(Garbage):
        desk.say(Unchanged(as_of=NOON, server_time=NOON))


def test_after_a_reboot_grants_stand_and_nobody_is_stopped_until_a_fetch(desk):
    desk.hear(ALICE)

    desk.restarted("boot-2")

    assert desk.granted() == {(1, 61001)}
    assert not desk.plans.in_force().state.may_stop
    desk.hear(ALICE, after_s=1)
    assert desk.plans.in_force().state.may_stop


def test_after_a_reboot_with_a_clock_before_the_fetch_nothing_is_granted(desk):
    desk.hear(ALICE)

    desk.hands.wall = NOON - timedelta(days=365)
    desk.restarted("boot-2")

    assert desk.granted() == set()
    assert not desk.plans.in_force().state.may_stop


def test_a_restart_in_the_same_boot_may_stop_at_once(desk):
    desk.hear(ALICE)

    desk.restarted()

    assert desk.plans.in_force().state.may_stop


def test_before_the_first_plan_nobody_is_stopped_and_nothing_is_granted(desk):
    assert desk.plans.in_force().state.as_of is None
    assert not desk.plans.in_force().state.may_stop


def test_a_name_that_cannot_be_looked_up_later_keeps_its_uid(desk):
    desk.hear(ALICE)
    desk.users.broken = True

    desk.hear(ALICE, after_s=10, etag="other")

    assert desk.granted() == {(1, 61001)}
    assert desk.kinds() == []


def test_a_hanging_directory_delays_only_those_it_must_name(tmp_path, monkeypatch):
    monkeypatch.setattr("workers.host.plans.NAMES_WAIT_S", 0.05)
    desk = Desk(tmp_path, alice=61001, bob=61002)
    desk.hear(ALICE)
    desk.users.answers.clear()
    bob = msgspec.structs.replace(ALICE, booking=2, device="GPU-2", unix_name="bob")

    desk.hear(ALICE, bob, after_s=10, etag="other")

    assert desk.granted() == {(1, 61001)}
    assert desk.plans.unresolved
    desk.users.answers.set()
    monkeypatch.setattr("workers.host.plans.NAMES_WAIT_S", 5)
    assert desk.plans.resolve()
    assert desk.granted() == {(1, 61001), (2, 61002)}
    assert not desk.plans.unresolved


@pytest.mark.parametrize(
    ("uids", "expected_uid"),
    [({"carol": 1}, None), ({"alice": 0}, None), ({"alice": 61001}, 4242)],
)
def test_an_unknown_name_root_and_an_unexpected_uid_get_no_grant(tmp_path, uids, expected_uid):
    desk = Desk(tmp_path, **uids)
    grant = msgspec.structs.replace(ALICE, expected_uid=expected_uid)

    desk.hear(grant)
    desk.hear(grant, after_s=1)

    assert desk.granted() == set()
    assert desk.kinds() == ["no_account"]
    assert not desk.plans.unresolved


def at_another_time(desk, ahead, *grants):
    """The plan of a server whose clock is that far ahead."""
    there = desk.hands.wall + ahead
    return desk.plan(*grants, as_of=there, server_time=there)


@pytest.mark.parametrize("ahead", [timedelta(days=400), timedelta(minutes=61)])
def test_a_server_whose_clock_jumps_ends_no_slot(desk, ahead):
    desk.hear(ALICE)
    desk.hands.pass_time(10)

    with pytest.raises(Garbage, match="clock has jumped"):
        desk.say(at_another_time(desk, ahead, ALICE))

    (grant,) = desk.plans.in_force().grants
    assert grant.end > desk.plans._clock.now()
    assert not desk.plans.in_force().state.confirms(ALICE.end)
    assert desk.kinds() == ["plan_refused"]
    assert [problem.code for problem in desk.plans.problems()] == ["plan_refused"]
    desk.hear(ALICE, after_s=10)
    assert desk.plans.problems() == []


@pytest.mark.parametrize("heartbeat_first", [False, True])
def test_a_server_whose_clock_was_wrong_and_is_put_right_is_heard_again(desk, heartbeat_first):
    desk.hear(ALICE)
    ahead = timedelta(days=400)
    for _ in range(4):
        desk.hands.pass_time(59)
        with pytest.raises(Garbage):
            desk.say(at_another_time(desk, ahead, ALICE))
    desk.hands.pass_time(200)
    desk.say(at_another_time(desk, ahead, ALICE))

    for _ in range(6):
        desk.hands.pass_time(59)
        with pytest.raises(Garbage):
            desk.hear(ALICE)
    desk.hands.pass_time(10)
    if heartbeat_first:
        now_s = desk.hands.boottime_s
        desk.plans._clock.adjust(desk.hands.wall, sent_s=now_s, received_s=now_s)
    desk.hear(ALICE)

    assert desk.plans.stored.as_of == desk.hands.wall
