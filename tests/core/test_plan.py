"""Which grants a host is told of."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from reservations.core.plan import Held, UnixAccount, select_grants
from reservations.core.wire import HostSettings, plan_etag
from tests.build import NOON

HOUR = timedelta(hours=1)
ALICE, BOB = 1, 2
ACCOUNTS = {ALICE: UnixAccount("alice", 1001), BOB: UnixAccount("bob")}


def held(booking: int = 1, *, start=NOON, hours: float = 1, people=(ALICE,), **fields) -> Held:
    return Held(
        booking=booking,
        device=fields.pop("device", "GPU-1"),
        start=start,
        end=start + hours * HOUR,
        people=frozenset(people),
        **fields,
    )


def test_everybody_of_a_booking_gets_a_grant_on_every_device():
    rows = [held(people=(ALICE, BOB), device=uuid) for uuid in ("GPU-1", "GPU-2")]
    made = select_grants(rows, ACCOUNTS, now=NOON)
    assert [(g.device, g.unix_name, g.expected_uid) for g in made.grants] == [
        ("GPU-1", "alice", 1001),
        ("GPU-1", "bob", None),
        ("GPU-2", "alice", 1001),
        ("GPU-2", "bob", None),
    ]
    assert made.complete_until is None


def test_somebody_without_an_account_on_the_host_gets_no_grant():
    made = select_grants([held(people=(ALICE, 99))], ACCOUNTS, now=NOON)
    assert [grant.unix_name for grant in made.grants] == ["alice"]


def test_maintenance_makes_no_grants_and_service_says_so():
    rows = [held(1, kind="maintenance"), held(2, start=NOON + HOUR, kind="service")]
    made = select_grants(rows, ACCOUNTS, now=NOON)
    assert [(grant.booking, grant.kind) for grant in made.grants] == [(2, "service")]


def test_ended_grants_stay_for_24_hours_and_not_longer():
    row = held(hours=1)
    assert select_grants([row], ACCOUNTS, now=row.end + 24 * HOUR - HOUR / 3600).grants
    assert not select_grants([row], ACCOUNTS, now=row.end + 24 * HOUR).grants


def test_somebody_who_has_left_keeps_only_grants_that_have_ended():
    gone = {ALICE: UnixAccount("alice", active=False)}
    rows = [held(1), held(2, start=NOON + HOUR)]
    made = select_grants(rows, gone, now=NOON + HOUR)
    assert [grant.booking for grant in made.grants] == [1]


def test_a_booking_made_30_days_ahead_is_in_the_plan_today_and_on_its_day():
    row = held(start=NOON + 30 * 24 * HOUR)
    for now in (NOON, row.start, row.end):
        (grant,) = select_grants([row], ACCOUNTS, now=now).grants
        assert (grant.start, grant.end) == (row.start, row.end)


def test_the_latest_grants_are_left_out_and_the_plan_says_from_when_on():
    rows = [held(number, start=NOON + number * HOUR) for number in range(10)]
    made = select_grants(reversed(rows), ACCOUNTS, now=NOON, limit=7)
    assert [grant.booking for grant in made.grants] == list(range(7))
    assert made.complete_until == NOON + 7 * HOUR


@given(
    starts=st.lists(st.integers(-48, 48), max_size=30),
    limit=st.integers(0, 40),
)
def test_no_grant_before_complete_until_is_missing(starts, limit):
    rows = [held(number, start=NOON + hour * HOUR) for number, hour in enumerate(starts)]
    whole = select_grants(rows, ACCOUNTS, now=NOON)
    cut = select_grants(rows, ACCOUNTS, now=NOON, limit=limit)
    assert cut.grants == whole.grants[:limit]
    if cut.complete_until is None:
        assert cut.grants == whole.grants
    else:
        told = [grant for grant in whole.grants if grant.start < cut.complete_until]
        assert set(told) <= set(cut.grants)


def test_the_etag_knows_from_when_on_the_plan_is_incomplete():
    """Else a host that hears "unchanged" goes on trusting the part that it was not told."""
    grants = select_grants([held()], ACCOUNTS, now=NOON).grants
    etags = {
        plan_etag("e", grants, HostSettings(), complete_until=until)
        for until in (None, NOON + HOUR, NOON + 2 * HOUR)
    }
    assert len(etags) == 3


def test_the_etag_knows_epoch_grants_and_settings_and_nothing_else():
    grants = select_grants([held()], ACCOUNTS, now=NOON).grants
    again = select_grants([held()], ACCOUNTS, now=NOON + HOUR / 2).grants
    etag = plan_etag("e", grants, HostSettings())
    assert etag == plan_etag("e", again, HostSettings())
    assert len({etag, plan_etag("f", grants, HostSettings()), plan_etag("e", (), HostSettings()),
                plan_etag("e", grants, HostSettings(mode="warn"))}) == 4  # fmt: skip
