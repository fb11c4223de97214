from datetime import UTC, datetime, timedelta

import pytest

from reservations.core.lifecycle import Phase, Role, Verb, may, phase_of, possible

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("now", "phase"),
    [
        (NOON - TICK, Phase.UPCOMING),
        (NOON, Phase.ACTIVE),
        (NOON + HOUR - TICK, Phase.ACTIVE),
        (NOON + HOUR, Phase.ENDED),
    ],
)
def test_the_phase_follows_from_the_time_and_the_end_is_out(now, phase):
    assert phase_of(state="confirmed", start=NOON, end=NOON + HOUR, now=now) is phase


@pytest.mark.parametrize("state", ["pending", "cancelled", "rejected"])
def test_what_people_decided_stays_whatever_the_time(state):
    for now in (NOON - HOUR, NOON, NOON + 2 * HOUR):
        assert phase_of(state=state, start=NOON, end=NOON + HOUR, now=now) == state


@pytest.mark.parametrize(
    ("phase", "role", "verbs"),
    [
        (Phase.UPCOMING, Role.OWNER, ["move", "extend", "cancel"]),
        (Phase.ACTIVE, Role.OWNER, ["move", "extend", "release"]),
        (Phase.PENDING, Role.OWNER, ["cancel"]),
        (Phase.PENDING, Role.OPERATOR, ["cancel", "approve", "reject"]),
        (Phase.UPCOMING, Role.MANAGER, ["cancel"]),
        (Phase.ACTIVE, Role.MANAGER, ["release"]),
        (Phase.ACTIVE, Role.READER, []),
        (Phase.ACTIVE, Role.STRANGER, []),
        (Phase.ENDED, Role.OPERATOR, []),
        (Phase.CANCELLED, Role.OPERATOR, []),
        (Phase.REJECTED, Role.OPERATOR, []),
    ],
)
def test_what_is_possible_depends_on_phase_and_role(phase, role, verbs):
    assert [verb.value for verb in possible(phase, role)] == verbs


def test_only_operators_choose_other_devices_for_somebody():
    assert [role for role in Role if may(role, Verb.REBIND)] == [Role.OPERATOR]
