"""The committed examples of every message are what both sides speak. Hosts may run a version behind:
an example that no longer fits is a break of the wire, not of this test.
"""

from pathlib import Path

import msgspec
import pytest

from reservations.core import wire

FIXTURES = Path(__file__).parents[1] / "fixtures"
MESSAGES = [
    ("plan", wire.Plan),
    ("inventory", wire.Inventory),
    ("reports", wire.Reports),
    ("samples", wire.Samples),
]


@pytest.mark.parametrize(("name", "shape"), MESSAGES)
def test_an_example_is_read_and_written_back_without_a_difference(name, shape):
    text = (FIXTURES / f"{name}.json").read_bytes()
    message = msgspec.json.decode(text, type=shape)
    assert msgspec.json.decode(msgspec.json.encode(message)) == msgspec.json.decode(text)


def test_the_etag_of_the_example_is_that_of_its_content():
    plan = msgspec.json.decode((FIXTURES / "plan.json").read_bytes(), type=wire.Plan)
    etag = wire.plan_etag(
        plan.epoch, plan.grants, plan.settings, complete_until=plan.complete_until
    )
    assert plan.etag == etag


@pytest.mark.parametrize(("name", "shape"), MESSAGES)
def test_what_a_newer_version_adds_is_passed_over(name, shape):
    body = msgspec.json.decode((FIXTURES / f"{name}.json").read_bytes())
    assert msgspec.convert({**body, "added_later": [1]}, shape) == msgspec.convert(body, shape)


@pytest.mark.parametrize(("name", "shape"), MESSAGES)
def test_every_message_names_its_version(name, shape):
    body = msgspec.json.decode((FIXTURES / f"{name}.json").read_bytes())
    written = msgspec.to_builtins(msgspec.convert(body, shape))
    assert body["wire"] == written["wire"] == wire.VERSION
