"""Each kind of rule: where its limit lies, and in which words it objects."""

from datetime import UTC, datetime, timedelta

import pytest

from reservations.core.period import Period
from reservations.core.rules.base import BookingRequest, Standing, Terms, Unit, check_match
from reservations.core.rules.horizon import Horizon
from reservations.core.rules.max_devices import MaxDevices, busiest
from reservations.core.rules.max_length import MaxLength

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def unit(start=NOON, hours=1.0, **fields):
    period = Period(start, start + hours * HOUR)
    return Unit(**{"host": "a", "model": "A100", "period": period, "owner": 1, **fields})


def request(*units, team=None):
    units = units or (unit(),)
    return BookingRequest(1, units[0].period, units, team)


def terms(limit, match=None, scope="user"):
    return Terms("limit", limit, match or {}, scope)


class TestMaxLength:
    def test_exactly_the_limit_passes(self):
        rule = MaxLength(terms(168))
        assert rule.objection(request(unit(hours=168)), Standing(), NOON) is None

    def test_anything_longer_is_refused_with_figures(self):
        objection = MaxLength(terms(168)).objection(request(unit(hours=240)), Standing(), NOON)
        assert objection.text == "This booking lasts 10 days; the limit is 7 days."
        assert objection.facts == {"limit_hours": 168, "asked_hours": 240}

    def test_short_limits_speak_in_hours(self):
        objection = MaxLength(terms(1)).objection(request(unit(hours=1.5)), Standing(), NOON)
        assert objection.text == "This booking lasts 1.5 hours; the limit is 1 hour."


class TestHorizon:
    def test_the_end_counts_and_not_the_start(self):
        rule = Horizon(terms(30))
        starts_within = unit(start=NOON + 30 * DAY - HOUR, hours=1)
        assert rule.objection(request(starts_within), Standing(), NOON) is None
        reaches_beyond = unit(start=NOON + 30 * DAY - HOUR, hours=2)
        assert rule.objection(request(reaches_beyond), Standing(), NOON) is not None

    def test_it_objects_with_figures(self):
        objection = Horizon(terms(30)).objection(
            request(unit(start=NOON + 30 * DAY, hours=24)), Standing(), NOON
        )
        assert objection.text == (
            "This booking ends 31 days from now; bookings must end within 30 days."
        )


class TestMaxDevices:
    def test_devices_held_at_the_same_time_count(self):
        rule = MaxDevices(terms(2))
        held = Standing((unit(),))
        assert rule.objection(request(unit()), held, NOON) is None
        objection = rule.objection(request(unit(), unit()), held, NOON)
        assert objection.text == (
            "One person would hold 3 devices at once (1 booked already); the limit is 2."
        )

    def test_bookings_that_only_touch_do_not_count_together(self):
        held = Standing((unit(start=NOON - HOUR), unit(start=NOON + HOUR)))
        assert MaxDevices(terms(1)).objection(request(unit()), held, NOON) is None

    def test_the_busiest_instant_counts_and_not_the_sum(self):
        held = Standing((unit(), unit(start=NOON + HOUR), unit(start=NOON + 2 * HOUR)))
        assert MaxDevices(terms(2)).objection(request(unit(hours=3)), held, NOON) is None

    @pytest.mark.parametrize(("scope", "used"), [("user", 1), ("team", 2), ("site", 3)])
    def test_the_scope_says_whose_devices_count(self, scope, used):
        held = Standing((unit(owner=1, team="x"), unit(owner=2, team="x"), unit(owner=3, team="y")))
        usage = MaxDevices(terms(8, scope=scope)).usage(request(unit(), team="x"), held, NOON)
        assert usage.used == used

    def test_a_team_rule_does_not_speak_of_bookings_without_a_team(self):
        rule = MaxDevices(terms(0, scope="team"))
        assert rule.objection(request(unit()), Standing(), NOON) is None

    def test_only_what_matches_is_counted(self):
        rule = MaxDevices(terms(1, match={"model": "H100"}))
        held = Standing((unit(model="A100"), unit(model="A100")))
        assert rule.objection(request(unit(model="H100")), held, NOON) is None
        assert rule.objection(request(unit(model="A100")), held, NOON) is None


@pytest.mark.parametrize("rule", [MaxLength, Horizon, MaxDevices])
def test_a_rule_is_silent_about_what_it_does_not_match(rule):
    made = rule(terms(0, match={"kind": "normal"}))
    assert made.objection(request(unit(kind="service")), Standing(), NOON) is None
    assert made.usage(request(unit(kind="maintenance")), Standing(), NOON) is None
    assert made.objection(request(unit(kind="normal")), Standing(), NOON) is not None


@pytest.mark.parametrize(
    ("match", "fault"),
    [
        ({}, None),
        ({"kind": "normal", "role": ["person", "guest"]}, None),
        ({"colour": "red"}, "match has unknown keys: colour"),
        ({"kind": 3}, "match kind must be a text or a list of texts"),
        ([], "match must be an object"),
    ],
)
def test_a_match_that_cannot_be_obeyed_is_named(match, fault):
    assert check_match(match) == fault


def test_busiest_of_nothing_is_nothing():
    assert busiest([], Period(NOON, NOON + HOUR)) == 0
