"""What every kind of rule must do, whichever file it comes from."""

from datetime import UTC, datetime, timedelta

import pytest

from reservations import registry
from reservations.core.errors import Objection
from reservations.core.period import Period
from reservations.core.rules.base import BookingRequest, Standing, Terms, Unit

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)
PERIOD = Period(NOW + timedelta(hours=1), NOW + timedelta(hours=3))
UNIT = Unit(host="a", model="A100", period=PERIOD, owner=1)
REQUEST = BookingRequest(1, PERIOD, (UNIT,))
STANDING = Standing((UNIT,))

kinds = pytest.mark.parametrize("kind", sorted(registry.rule_kinds()))


def made(kind: str, limit: float, **terms):
    return registry.rule_kinds()[kind](Terms("the-rule", limit, **terms))


@kinds
def test_it_lets_pass_what_a_huge_limit_allows(kind):
    assert made(kind, 1e9).objection(REQUEST, STANDING, NOW) is None


@kinds
def test_it_objects_in_a_sentence_with_its_own_name_and_figures(kind):
    objection = made(kind, 0).objection(REQUEST, STANDING, NOW)
    assert isinstance(objection, Objection)
    assert objection.rule == "the-rule"
    assert objection.text[0].isupper()
    assert objection.text.endswith(".")
    assert any(letter.isdigit() for letter in objection.text)
    assert objection.facts


@kinds
def test_it_objects_exactly_when_its_usage_is_above_the_limit(kind):
    usage = made(kind, 1e9).usage(REQUEST, STANDING, NOW)
    total = usage.used + usage.asked
    assert made(kind, total).objection(REQUEST, STANDING, NOW) is None
    assert made(kind, total - 0.001).objection(REQUEST, STANDING, NOW) is not None


@kinds
def test_it_is_silent_about_what_it_does_not_match(kind):
    rule = made(kind, 0, match={"host": "elsewhere"})
    assert rule.objection(REQUEST, STANDING, NOW) is None
    assert rule.usage(REQUEST, STANDING, NOW) is None


@kinds
def test_it_answers_the_same_when_asked_twice(kind):
    rule = made(kind, 0)
    first = rule.objection(REQUEST, STANDING, NOW)
    assert rule.objection(REQUEST, STANDING, NOW) == first
