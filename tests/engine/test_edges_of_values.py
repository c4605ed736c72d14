"""Where numbers, times and ordinals end: the nearest float of what none holds, bounds of intervals that
are open, and ordinals that English does not have.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest

from condgraph.engine.reading.numbers import read_number
from condgraph.engine.values import OPEN_END, OPEN_START, UNKNOWN_END, Quantity, as_float, bound_text


@pytest.mark.parametrize(
    ("number", "nearest", "exact"),
    [
        (10**400, math.inf, False),
        (-(10**400), -math.inf, False),
        (Decimal("1e400"), math.inf, False),
        (Decimal("-1e400"), -math.inf, False),
        (2**53, 2.0**53, True),
        (2**53 + 1, 2.0**53, False),
        (Decimal("0.1"), 0.1, True),
        (Decimal("0.10000000000000000001"), 0.1, False),
        (-3, -3.0, True),
        (0, 0.0, True),
    ],
)
def test_the_nearest_float(number: Any, nearest: float, exact: bool) -> None:
    assert as_float(Quantity(number)) == (nearest, exact)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (OPEN_START, None),
        (OPEN_START - 1, None),
        (OPEN_END, None),
        (UNKNOWN_END, None),
        (0, "1970-01-01"),
        (-86_400, "1969-12-31"),
        (1, "1970-01-01T00:00:01"),
        (-1, "1969-12-31T23:59:59"),
    ],
)
def test_bounds_of_intervals(seconds: int, text: str | None) -> None:
    assert bound_text(seconds) == text


def test_bounds_beside_the_open_ones_are_times() -> None:
    assert (bound_text(OPEN_START + 1) or "").startswith("-292277022657-01-27")
    assert (bound_text(UNKNOWN_END - 1) or "").startswith("292277026596-12-04")


def test_ordinals_as_english_has_them() -> None:
    """Every ending of every number to 1,250, with and without the comma, against the rule as grammars
    print it.
    """
    for number in range(1_251):
        teen = 11 <= number % 100 <= 13
        right = "th" if teen else ("th", "st", "nd", "rd", *["th"] * 6)[number % 10]
        for ending in ("st", "nd", "rd", "th"):
            for digits in {str(number), f"{number:,}"}:
                found = [one for one in read_number(digits + ending) if one.tag == "ord"]
                assert [one.value for one in found] == ([Quantity(number)] if ending == right else []), digits + ending
