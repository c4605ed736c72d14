"""Where rules of values and columns turn: texts of bounds, units, concepts beside rows. Changes of one
operator lived there.
"""

from __future__ import annotations

import numpy as np

from condgraph.engine import algebra as alg
from condgraph.engine.answer import Answer
from condgraph.engine.bounds import current, in_order, pieces, waiting, within
from condgraph.engine.check import built
from condgraph.engine.execute.run import Run
from condgraph.engine.execute.sets import order_key
from condgraph.engine.facts import Entity, EntityKind, Member, Sourced, Statement
from condgraph.engine.functions import rounded
from condgraph.engine.operands import Operand
from condgraph.engine.reading.numbers import read_number
from condgraph.engine.snapshot.build import rows_of_several
from condgraph.engine.values import Quantity, Time


def test_bounds_of_spans_are_months_where_they_can() -> None:
    for first, last in (((1990, 3), (1991, 5)), ((1990, 2), (1991, 11))):
        span = Time.span(Time.month(*first), Time.month(*last))
        assert str(span) == f"{first[0]}-{first[1]:02}/{last[0]}-{last[1]:02}"
        assert Time.parse(str(span)) == span


def test_rows_are_no_concepts() -> None:
    row = Sourced(Entity("r", "R", EntityKind.ROW, 3), (("t", 3),))
    snapshot = built([Entity("c", "C", EntityKind.CONCEPT), Entity("e", "E"), row, Member("e", "c")])
    assert snapshot.texts.take(snapshot.entity_id[snapshot.arrays.get("con.entity")]) == ["c"]


def test_a_number_of_four_signs_with_its_unit() -> None:
    found = [[str(one.value) for one in read_number(text)] for text in ("1.25sec", "1250°C", "1980s")]
    assert found == [["1.25 sec"], ["1250 °C"], []]


def test_rounding_to_digits() -> None:
    for digits, found in (("1", 1234.6), ("0", 1235), ("-2", 1200)):
        assert rounded([Operand([1234.567], ["1234.567"], [])], {"digits": digits}) == [Quantity(found)]


def test_whole_numbers_of_eight_bytes_are_in_order_all_bits() -> None:
    numbers = np.array([2**40 + 5, 3, 2**40 + 1, 2**33, 2**40 + 4, 1], np.int64)
    assert numbers[in_order([numbers])].tolist() == sorted(numbers.tolist())


def test_pieces_are_for_those_who_look_at_the_clock() -> None:
    assert list(pieces("abcde", 2)) == ["abcde"]
    with within(60.0):
        assert list(pieces("abcde", 2)) == ["ab", "cd", "e"]
        assert list(pieces("ab", 2)) == ["ab"]


def test_a_load_that_waits_shortly_gives_a_store_a_second() -> None:
    with waiting(0.001):
        budget = current()
        assert budget is not None
        assert (budget.left() or 0) > 0.5


def test_memberships_are_kept_once() -> None:
    snapshot = built([Member("e", "c"), Member("f", "c"), Member("e", "c"), Member("f", "c")])
    assert len(snapshot.arrays.get("mem.e")) == 2


def test_truth_comes_before_numbers() -> None:
    assert sorted([Quantity(-1), True, Quantity(5), False], key=order_key) == [False, True, Quantity(-1), Quantity(5)]


def test_an_entity_that_two_sources_declare_is_no_row_of_them() -> None:
    twice = built([Sourced(Entity("e", "E"), (("a", 1), ("b", 2)))])
    assert rows_of_several(twice, {0, 1}) == []
    rows = built([Sourced(Entity("e", "E", EntityKind.ROW), (("a", 1), ("b", 2)))])
    assert rows_of_several(rows, {0, 1}) == ["1 entity is a row of 'a' and of 'b', by one id: 'e'"]


def test_times_beside_numbers_that_no_float_is() -> None:
    spans = [Time.span(Time.year(first), Time.year(1999)) for first in (1990, 1995)]
    facts = [Statement(one, "p", span) for one, span in zip("ab", spans, strict=True)]
    plan = alg.Extreme(alg.Objects(alg.Scan(None, ("p",))), "largest")
    execution = Run(built([*facts, Statement("c", "q", Quantity(2**53 + 1))]))
    execution.execute(plan)
    assert Answer(execution, plan).texts == list(map(str, spans))
