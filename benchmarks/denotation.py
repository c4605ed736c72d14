"""Denotation accuracy of WikiTableQuestions: whether two lists of answer texts are equal.

Texts are compared in a common form (no accents, one kind of quote and dash, no citation marks, no trailing
parentheses or full stop, no case). Numbers are equal within 1e-6; dates are equal if year, month and day are, with
`xx` for a missing part. An answer is right if both lists have the same number of distinct items and every expected
item matches one. Containing the expected text, or being contained in it, does not count.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

#: Two numbers this near are the same.
TOLERANCE: Final = 1e-6

_SAME: Final = str.maketrans({**dict.fromkeys("‘’´`", "'"), **dict.fromkeys("“”", '"'), **dict.fromkeys("‐‑‒–—−", "-")})
_CITATION: Final = re.compile(r"(?:\[[^\[\]]*\]|[•♦†‡*#+])\Z")
_DETAIL: Final = re.compile(r" \([^()]*\)\Z")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.ASCII)
_DATE: Final = re.compile(r"(\d{1,4}|xx|xxxx)-(\d{1,2}|xx)-(\d{1,2}|xx)", re.ASCII)
#: Longest text whose end is looked at for citations and details, one after the other.
_LONG: Final = 10_000

Date = tuple[int | None, int | None, int | None]


@dataclass(frozen=True, slots=True)
class Item:
    """One answer: its text in the common form, and the number or date (year, month, day; None where
    not given) it reads as.
    """

    text: str
    number: float | None = None
    date: Date | None = None

    def matches(self, other: Item) -> bool:
        """Whether both say the same."""
        if self.text == other.text:
            return True
        if self.number is not None and other.number is not None:
            return abs(self.number - other.number) < TOLERANCE
        return self.date is not None and self.date == other.date


def normalise(text: str) -> str:
    """The common form of a text.

    >>> normalise("“Café” – Paris[1] (live)*")
    '"cafe" - paris'
    """
    # Marks go before as well: putting a long run of them in order takes the square of its length.
    text = "".join(character for character in text if unicodedata.category(character) != "Mn")
    text = "".join(character for character in unicodedata.normalize("NFKD", text) if unicodedata.category(character) != "Mn")
    text = " ".join(text.translate(_SAME).split())
    while 0 < len(text) < _LONG:
        shorter = text
        # A mark or a parenthesis that is the whole text stays.
        while (found := _CITATION.search(shorter)) and found.start() > 0:
            shorter = shorter[: found.start()].rstrip()
        while (found := _DETAIL.search(shorter)) and found.start() > 0:
            shorter = shorter[: found.start()].rstrip()
        if len(shorter) > 1 and shorter[0] == shorter[-1] == '"' and '"' not in shorter[1:-1]:
            shorter = shorter[1:-1].strip()
        if shorter == text:
            break
        text = shorter
    if text.endswith("."):
        text = text[:-1]
    return " ".join(text.split()).casefold()


def item(text: str, canonical: str | None = None) -> Item:
    """Read one answer; `canonical` is its number or date in plain form, where the data set or a
    table gives one.

    >>> item("1960-xx-xx").date, item("10,000", "10000").number
    ((1960, None, None), 10000.0)
    """
    plain = (text if canonical is None else canonical).strip().casefold()
    number = float(plain) if _NUMBER.fullmatch(plain) else None
    return Item(normalise(text), number if number is not None and math.isfinite(number) else None, _date(plain))


def same_denotation(expected: Iterable[Item], given: Iterable[Item]) -> bool:
    """Whether two answers, each a list of items whose order and repetitions do not count, are the
    same.
    """
    wanted, found = _distinct(expected), _distinct(given)
    return len(wanted) == len(found) and all(any(one.matches(other) for other in found) for one in wanted)


def is_right(expected: Sequence[str], given: Sequence[str], canonical: Sequence[str] | None = None) -> bool:
    """Whether the answer texts `given` are the expected ones; `canonical` are plain forms of the
    expected ones, as many.

    >>> is_right(["New York", "Ohio"], ["ohio", "New York (NY)"]), is_right(["Ohio"], ["Ohio River"])
    (True, False)
    """
    plain: Sequence[str | None] = canonical if canonical is not None else [None] * len(expected)
    return same_denotation([item(text, form) for text, form in zip(expected, plain, strict=True)], [item(text) for text in given])


def _date(text: str) -> Date | None:
    found = _DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day = (None if part.startswith("x") else int(part) for part in found.groups())
    if (year, month, day) == (None, None, None):
        return None
    if (month is not None and not 1 <= month <= 12) or (day is not None and not 1 <= day <= 31):
        return None
    return year, month, day


def _distinct(items: Iterable[Item]) -> list[Item]:
    """Each item once: numbers and dates by what they say, others by their text."""
    found: dict[object, Item] = {}
    for one in items:
        key: object = one.date if one.date is not None else one.number if one.number is not None else one.text
        found.setdefault(key, one)
    return list(found.values())
