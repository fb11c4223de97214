"""Text that somebody else wrote, made harmless for a terminal.

A terminal obeys what it shows: an escape sequence in a name could retitle it, answer in its owner's
place or hide a line. What is not seen is left out, so only letters, marks, figures, signs and single
blanks are left.
"""

import unicodedata

# Controls, format characters (bidi and zero width among them), surrogates, private use, unassigned.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})
# Marks stack on the letter before them; names need no more, and a heap covers the lines around it.
_MAX_MARKS = 2
# Letters by name, and seen by nobody.
_BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")


def plain(text: str, *, limit: int) -> str:
    """At most ``limit`` characters of the text, in one line."""
    seen: list[str] = []
    marks = 0
    for character in " ".join(text.split()):
        category = unicodedata.category(character)
        if category in _UNSEEN or character in _BLANK_LETTERS:
            continue
        marks = marks + 1 if category.startswith("M") else 0
        if marks <= _MAX_MARKS:
            seen.append(" " if category.startswith("Z") else character)
    # Blanks on both sides of something left out have become neighbours.
    line = " ".join("".join(seen).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
