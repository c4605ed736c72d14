"""Numbers at the edges of floats, in columns and one by one: the same number is the same statement."""

from __future__ import annotations

import numpy as np
import pytest

import condgraph
from condgraph.engine.facts import Batch, Numbers, Statement
from condgraph.engine.values import Quantity, parse_number


@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
def test_a_negative_zero_is_zero(zero: float) -> None:
    """A column that has it says the statement that others say of 0."""
    graph = condgraph.open("memory:")
    graph.add([Batch(["s"], "p", Numbers(np.array([-0.0])), [1])], source="columns")
    graph.add([Statement("s", "p", Quantity(zero))], source="single")
    assert graph.status().counts["attributes"] == 1
    (fact,) = graph.kopl("Find(s) QueryAttr(p)").evidence
    assert str(fact).endswith("[columns, row 1; single]")


def test_numbers_that_no_float_reaches_are_in_order() -> None:
    """Below and above every float, on the right side of each."""
    graph = condgraph.open("memory:")
    numbers = [-(10**400), -1e308, -1, 0, 1e308, 10**400]
    graph.add([Statement(f"s{at}", "p", Quantity(number)) for at, number in enumerate(numbers)])
    assert graph.kopl("FindAll() FilterNum(p, -1, <) QueryName()").texts == ["s0", "s1"]
    assert graph.kopl("FindAll() FilterNum(p, 0, >) QueryName()").texts == ["s4", "s5"]
    assert [quantity.number for quantity in graph.kopl("FindAll() QueryAttr(p)").values] == numbers


def test_zeros_at_the_end_make_no_other_number() -> None:
    graph = condgraph.open("memory:")
    texts = ("0.12345678901234567890", "0.1234567890123456789")
    graph.add([Statement("a", "v", Quantity(parse_number(text))) for text in texts])
    assert graph.status().counts["attributes"] == 1
    assert graph.kopl("Find(a) QueryAttr(v)").texts == [texts[1]]
