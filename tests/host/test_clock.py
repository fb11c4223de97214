from datetime import timedelta

import pytest

from tests.host.clocks import NOON, Hands


@pytest.fixture
def hands():
    return Hands()


def test_before_any_exchange_the_wall_clock_is_used_and_not_trusted(hands):
    clock = hands.clock()

    assert clock.now() == NOON
    assert not clock.trusted
    assert clock.offset_s is None


def test_after_an_exchange_steps_of_the_wall_clock_change_nothing(hands):
    clock = hands.clock()
    clock.adjust(NOON, sent_s=1000, received_s=1000)

    hands.wall -= timedelta(days=3)
    hands.boottime_s += 10

    assert clock.now() == NOON + timedelta(seconds=10)
    assert clock.trusted
    assert clock.offset_s == pytest.approx(-3 * 86_400 - 10)


def test_an_answer_that_agrees_within_its_own_delay_leaves_the_clock_alone(hands):
    clock = hands.clock()
    clock.adjust(NOON, sent_s=1000, received_s=1000)
    hands.boottime_s = 1010

    clock.adjust(NOON + timedelta(seconds=8), sent_s=1005, received_s=1010)

    assert clock.now() == NOON + timedelta(seconds=10)


@pytest.mark.parametrize(
    ("server_s", "expected_s"),
    [
        (20, 20),  # the server is ahead: it said so when the answer came
        (-20, -15),  # the server is behind: it said so when the question left, 5 s ago
    ],
)
def test_an_answer_that_contradicts_the_clock_moves_it_as_little_as_it_must(
    hands, server_s, expected_s
):
    clock = hands.clock()
    clock.adjust(NOON, sent_s=1000, received_s=1000)
    hands.boottime_s = 1010

    clock.adjust(NOON + timedelta(seconds=server_s), sent_s=1005, received_s=1010)

    assert clock.now() == NOON + timedelta(seconds=expected_s)


def test_a_small_correction_never_runs_time_backwards(hands):
    clock = hands.clock()
    clock.adjust(NOON, sent_s=1000, received_s=1000)
    before = clock.now()

    clock.adjust(NOON - timedelta(seconds=1), sent_s=1000, received_s=1000)

    assert clock.now() == before
    hands.boottime_s += 3
    assert clock.now() == NOON + timedelta(seconds=2)


def test_an_anchor_is_good_in_its_own_boot_only(hands):
    clock = hands.clock()
    clock.adjust(NOON + timedelta(hours=1), sent_s=1000, received_s=1000)
    anchor = clock.anchor

    restarted, rebooted = hands.clock(), hands.clock(boot="boot-2")
    restarted.restore(anchor)
    rebooted.restore(anchor)

    assert restarted.now() == NOON + timedelta(hours=1)
    assert rebooted.now() == NOON
    assert not rebooted.trusted


def tell(hands, clock, ahead):
    """The server, whose clock is that far ahead of what it was, answers at once."""
    now_s = hands.boottime_s
    clock.adjust(hands.wall + ahead, sent_s=now_s, received_s=now_s)


@pytest.mark.parametrize("ahead", [timedelta(days=400), timedelta(minutes=2), -timedelta(days=1)])
def test_a_jump_of_the_servers_clock_is_followed_only_once_it_has_lasted(hands, ahead):
    clock = hands.clock()
    tell(hands, clock, timedelta(0))

    for _ in range(5):
        hands.pass_time(59)
        tell(hands, clock, ahead)
        assert clock.now() == hands.wall
    hands.pass_time(120)
    tell(hands, clock, ahead)

    assert clock.now() == hands.wall + ahead


def test_a_clock_that_jumps_about_is_never_followed(hands):
    clock = hands.clock()
    tell(hands, clock, timedelta(0))

    for number in range(20):
        hands.pass_time(100)
        tell(hands, clock, timedelta(hours=number % 3))

    assert clock.now() == hands.wall
