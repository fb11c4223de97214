"""What the bench makes of its measurements: the table and the file. The measuring itself is `make bench`."""

import json
import os

import pytest

from bench import fill, service
from bench.figures import (
    Figure,
    alternately_ms,
    percentile,
    print_table,
    write,
)
from reservations.selectors import bookings
from reservations.selectors.visible import EVERYTHING, calendar_row


def figure(**fields):
    return Figure(
        **{
            "name": "booking",
            "value": 30.0,
            "unit": "ms",
            "reference_name": "bare INSERT",
            "reference": 10.0,
            "target": "≤ 4 ×",
            "met": True,
            **fields,
        }
    )


def test_a_figure_is_compared_with_its_reference():
    assert figure().ratio == 3.0


@pytest.mark.parametrize("reference", [None, 0.0])
def test_without_a_reference_there_is_no_ratio(reference):
    assert figure(reference=reference).ratio is None


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([5.0], 50, 5.0),
        ([5.0], 99, 5.0),
        ([3.0, 1.0, 2.0], 50, 2.0),
        ([float(n) for n in range(1, 101)], 50, 50.0),
        ([float(n) for n in range(1, 101)], 99, 99.0),
        ([float(n) for n in range(1, 101)], 100, 100.0),
    ],
)
def test_a_percentile_is_the_nearest_rank(values, percent, expected):
    assert percentile(values, percent) == expected


def test_value_and_reference_are_measured_in_turns():
    order = []

    values, references = alternately_ms(
        lambda: order.append("value"), lambda: order.append("reference"), repeat=2
    )

    # Once beforehand, to warm up.
    assert order == ["value", "reference"] * 3
    assert len(values) == len(references) == 2


def test_the_table_has_a_line_for_each_figure_and_marks_what_missed_its_target(capsys):
    print_table([figure(), figure(name="calendar", met=False, reference=None)])

    met, missed = capsys.readouterr().out.splitlines()
    assert met.split() == [
        "booking", "30.00", "ms", "10.00", "3.00", "×", "ok", "≤", "4", "×", "[bare", "INSERT]",
    ]  # fmt: skip
    assert missed.split()[:4] == ["calendar", "30.00", "ms", "MISS"]


def test_an_empty_table_prints_nothing(capsys):
    print_table([])

    assert capsys.readouterr().out == ""


def test_the_file_holds_every_figure_with_its_ratio_and_the_machine(tmp_path):
    path = tmp_path / "results.json"

    write([figure(value=1 / 3), figure(reference=None)], path)

    content = json.loads(path.read_text())
    assert content["machine"].keys() >= {"python", "system"}
    first, second = content["figures"]
    assert first == {
        "name": "booking",
        "value": 0.333,
        "unit": "ms",
        "reference_name": "bare INSERT",
        "reference": 10.0,
        "target": "≤ 4 ×",
        "met": True,
        "ratio": 0.033,
    }
    assert second["reference"] is second["ratio"] is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(os.environ.get("BERTH_TEST_DB") != "postgres", reason="fills PostgreSQL")
def test_filled_bookings_are_bookings_of_today():
    devices = fill.devices(2)
    fill.bookings(6, on=devices, owners=fill.people(2), around=fill.today())
    made = list(bookings.whole())
    assert len(made) == 6
    for one in made:
        one.full_clean(validate_unique=False)
        assert calendar_row(one, viewer=EVERYTHING)["opening"] is None


@pytest.mark.django_db
def test_what_a_booking_is_compared_with_is_a_booking_too():
    service._insert(*fill.people(1), *fill.devices(1), fill.today())
    (made,) = bookings.whole()
    made.full_clean(validate_unique=False)
