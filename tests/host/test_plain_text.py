"""What people wrote cannot command a terminal."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.host.plain_text import plain

# Half of it of the kind that does harm.
NASTY = st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Zs", "Mn", "Me", "Co", "Cn"])
TEXTS = st.text(NASTY | st.characters(), max_size=200)


@settings(deadline=None)
@given(TEXTS, st.integers(1, 80))
def test_nothing_is_left_that_a_terminal_obeys_or_nobody_sees(text, limit):
    line = plain(text, limit=limit)
    assert len(line) <= limit
    assert all(unicodedata.category(one)[0] != "C" for one in line)
    assert {one for one in line if unicodedata.category(one)[0] == "Z"} <= {" "}
    assert line == line.strip()
    assert "  " not in line


@settings(deadline=None)
@given(TEXTS)
def test_what_is_plain_stays_as_it_is(text):
    once = plain(text, limit=80)
    assert plain(once, limit=80) == once


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b]0;owned\x07 \x1b[2J train", "]0;owned [2J train"),
        ("line\r\nnext\ttab", "line next tab"),
        ("\x9b31mred", "31mred"),
        ("ab\u202edc\u200b\u2066", "abdc"),
        ("Jürgen 王 é", "Jürgen 王 é"),
        ("z" + "\u0300" * 40, "z\u0300\u0300"),
        ("\ud800x", "x"),
        ("\u3164\u2800", ""),
    ],
)
def test_examples(text, left):
    assert plain(text, limit=100) == left


def test_what_is_too_long_is_seen_to_be_cut():
    assert plain("abcdef", limit=4) == "abc…"
