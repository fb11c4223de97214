"""Until when a gate that can close by itself lets people in."""

from hypothesis import given
from hypothesis import strategies as st

from reservations.core.enforcement import HostGrant
from reservations.core.leases import NEVER, endless, leases
from tests.core.stage import ALICE, BOB, GPU, at, grant

OTHER = "GPU-b"


def test_a_lease_ends_with_the_grant() -> None:
    assert leases([grant(ALICE)], always_open=(), now=at(minutes=5)) == {(GPU, ALICE): at(hours=1)}


def test_before_the_start_and_from_the_end_on_there_is_none() -> None:
    assert leases([grant(ALICE)], always_open=(), now=at(-1)) == {}
    assert leases([grant(ALICE)], always_open=(), now=at(hours=1)) == {}


def test_grants_that_touch_make_one_lease() -> None:
    grants = [
        grant(ALICE, at(hours=1), at(hours=2), booking=2),
        grant(ALICE),
        grant(ALICE, at(hours=2), at(hours=3), booking=3),
    ]

    assert leases(grants, always_open=(), now=at(1)) == {(GPU, ALICE): at(hours=3)}


def test_a_later_grant_after_a_gap_does_not_lengthen_this_one() -> None:
    grants = [grant(ALICE), grant(ALICE, at(hours=2), booking=2)]

    assert leases(grants, always_open=(), now=at(1)) == {(GPU, ALICE): at(hours=1)}
    assert leases(grants, always_open=(), now=at(minutes=90)) == {}


def test_a_shorter_grant_within_a_longer_one_shortens_nothing() -> None:
    grants = [
        grant(ALICE, end=at(hours=3)),
        grant(ALICE, at(minutes=10), at(minutes=20), booking=2),
    ]

    assert leases(grants, always_open=(), now=at(minutes=15)) == {(GPU, ALICE): at(hours=3)}


def test_each_person_has_a_lease_for_each_device() -> None:
    grants = [grant(ALICE), grant(ALICE, end=at(hours=2), device=OTHER), grant(BOB, device=OTHER)]

    assert leases(grants, always_open=(), now=at(1)) == {
        (GPU, ALICE): at(hours=1),
        (OTHER, ALICE): at(hours=2),
        (OTHER, BOB): at(hours=1),
    }


def test_who_is_always_let_in_has_no_lease_that_could_run_out() -> None:
    assert leases([grant(ALICE)], always_open=(ALICE,), now=at(1)) == {}


def test_where_gates_stay_as_they_are_no_lease_runs_out() -> None:
    assert endless([grant(ALICE), grant(BOB, at(hours=1))]) == {
        (GPU, ALICE): NEVER,
        (GPU, BOB): NEVER,
    }


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 10)), max_size=6), st.integers(0, 30))
def test_a_lease_covers_each_instant_until_its_end_and_not_one_beyond(
    periods: list[tuple[int, int]], minute: int
) -> None:
    grants = [
        grant(ALICE, at(minutes=start), at(minutes=start + length), booking=number)
        for number, (start, length) in enumerate(periods)
    ]
    end = leases(grants, always_open=(), now=at(minutes=minute)).get((GPU, ALICE))

    covered = minute
    while any(_covers(one, covered) for one in grants):
        covered += 1
    assert end == (at(minutes=covered) if covered > minute else None)


def _covers(one: HostGrant, minute: int) -> bool:
    return one.start <= at(minutes=minute) < one.end
