"""What makes asking fast, held against what it stands for: plain reading, single cells, sorted
values, no circles.
"""

from __future__ import annotations

import gc
from decimal import Decimal
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import condgraph
from condgraph.engine.algebra import AllOf, AnyOf, ById, ByName, Compare, Intersect, Operator, Reached, Scan, Union
from condgraph.engine.errors import LiteralError, ParseError, UnknownNameError
from condgraph.engine.execute import Run
from condgraph.engine.execute.conditions import Cell, as_places, holds
from condgraph.engine.execute.facts import comparable, object_cells, sorted_matches
from condgraph.engine.execute.sets import distinct
from condgraph.engine.facts import Ref, Statement
from condgraph.engine.passes import common_subplans, optimise
from condgraph.engine.snapshot.snapshot import Snapshot, ranges
from condgraph.engine.values import UNKNOWN, Quantity, Time
from condgraph.graph import Graph
from condgraph.languages.kopl import syntax as kopl_syntax
from condgraph.languages.kopl import table as kopl_table
from condgraph.languages.kopl.syntax import read_with_care

WORDS = st.text(st.sampled_from('ab ,()"\\é\n'), max_size=8)


@st.composite
def written(draw: st.DrawFn) -> str:
    """A program as somebody might write it, right or wrong."""
    calls = []
    for _ in range(draw(st.integers(0, 4))):
        function = draw(st.sampled_from([*kopl_table.FUNCTIONS, "Nothing"]))
        texts = draw(st.lists(WORDS, max_size=3))
        if draw(st.booleans()):
            texts = [f'"{text}"' for text in texts]
        calls.append(f"{function}({', '.join(texts)})")
    return draw(st.sampled_from([" ", "", "\n", " x "])).join(calls)


@example('Find("a\tb") Count()')
@example('Find("a") Count() Find("b\n") And()')
@example('FindAll() FilterStr("a", "b"),Count()')
@example('Find("a")"b"Count()')
@example('Find("a"b)')
@given(written())
def test_plain_reading_is_careful_reading(program: str) -> None:
    """What is read plainly would be read so with care; what is not, is left to care."""
    plain = kopl_syntax.read_plainly(program.strip())
    if plain is not None:
        assert plain == kopl_table.link(*read_with_care(program, None))


@pytest.mark.parametrize(
    ("program", "texts"),
    [
        ('FilterStr(key, "a, b")', ("key", "a, b")),
        ('FilterStr(key, "a) Count()")', ("key", "a) Count()")),
        ('FilterStr("key", "a")', ("key", "a")),
        ('FilterStr("key", a)', ("key", "a")),
        ('FilterNum(key, "1, 2" , >)', ("key", "1, 2", ">")),
        ('FilterNum(a, b, "\\u0031", ">")', ("a, b", "1", ">")),
        ('FilterStr(key, "a" and "b")', ("key", '"a" and "b"')),
        ('FilterStr(key, say "a")', ("key", 'say "a"')),
        ('FilterStr(key, "a)', ("key", '"a')),
    ],
)
def test_any_argument_may_be_a_string(program: str, texts: tuple[str, ...]) -> None:
    """Strings may stand beside plain arguments; quotes around a part of an argument belong to it."""
    steps, _ = read_with_care(f"FindAll() {program}", lambda role, text: role != "key" or text in ("key", "a, b"))
    assert steps[1].texts == texts


@pytest.mark.parametrize(
    ("program", "word", "near"),
    [
        ("Find(France) Realte(capital, forward) QueryName()", "Realte", "Relate"),
        ("Find(France) Relate(capital, forward) Filtr(x)", "Filtr", "FilterNum"),
        ("Find(France)Counts()", "Counts", "Count"),
        ("FindAll() FilterStr(a, b) Cuont()", "Cuont", "Count"),
    ],
)
def test_a_misspelled_function_is_no_part_of_a_name(program: str, word: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        read_with_care(program, None)
    assert f"unknown KoPL function '{word}'" in str(caught.value)
    assert near in caught.value.candidates
    assert caught.value.span == (program.index(word), program.index(word) + len(word))


@pytest.mark.parametrize("name", ["Foo (a) Baz(b)", "smile :) and (so)", "a) b", "(x)(y)"])
def test_parentheses_of_names(name: str) -> None:
    """Balanced ones, and those that begin no call."""
    steps, _ = read_with_care(f"Find({name}) QueryName()", None)
    assert steps[0].texts == (name,)


def test_usual_programs_are_read_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions are worked out for messages only."""
    monkeypatch.setattr(kopl_syntax, "read_with_care", lambda *_: pytest.fail("read with care"))
    for program in ('Find("a (b), c") Relate("d", "forward") Count()', "Find(a (b) c) QueryAttr(d, e)", " FindAll( )\nCount() "):
        steps, warnings = kopl_syntax.parse(program)
        assert len(steps) > 1
        assert not warnings


def graph(values: list[Any]) -> Snapshot:
    """Each value once as an attribute of an entity of its own, and as a qualifier of a relation."""
    found = condgraph.open("memory:")
    items = [Statement(f"e{i}", "key", value) for i, value in enumerate(values)]
    items += [Statement(f"e{i}", "rel", Ref("o"), (("key", value),)) for i, value in enumerate(values)]
    found.add(items)
    return found.current


def spans(first: Time, last: Time) -> Time:
    return Time.span(min(first, last, key=lambda time: time.start), max(first, last, key=lambda time: time.end))


TIMES = st.one_of(
    st.builds(Time.year, st.integers(-3, 3)),
    st.builds(Time.month, st.integers(0, 1), st.integers(1, 12)),
    st.builds(Time.day, st.integers(0, 1), st.integers(1, 3), st.integers(1, 28)),
)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([0.5, -0.5, 2**53, 2**53 + 1, 2**53 + 2, Decimal("0.1"), Decimal("0.10000000000000000000001")]),
)
LITERALS = st.one_of(
    st.sampled_from(["", "a", "b", "ab", "é"]),
    st.builds(Quantity, NUMBERS, st.sampled_from(["1", "metre"])),
    st.one_of(TIMES, st.builds(spans, TIMES, TIMES)),
)
VALUES = st.one_of(LITERALS, st.just(UNKNOWN), st.builds(Ref, st.sampled_from(["a", "aa", "x"])))
COMPARE = st.builds(Compare, st.sampled_from(get_args(Operator)), LITERALS)
TESTS = st.one_of(COMPARE, *(st.builds(kind, st.lists(COMPARE, min_size=1, max_size=3).map(tuple)) for kind in (AnyOf, AllOf)))


@given(st.lists(VALUES, min_size=1, max_size=12), TESTS)
def test_one_cell_is_compared_like_a_column(values: list[Any], test: Any) -> None:
    """The comparisons mean the same for arrays and for single numbers."""
    snapshot = graph(values)
    run = Run(snapshot)
    count = snapshot.statements - snapshot.relations
    if count:
        mask = holds(run, test, object_cells(run, np.arange(snapshot.relations, snapshot.statements, dtype=np.int32)))
        ordered = snapshot.ordered("att")
        assert mask.tolist() == [bool(holds(run, test, Cell(ordered, i))) for i in range(count)]


@given(st.lists(VALUES, min_size=1, max_size=12), TESTS)
def test_sorted_values_answer_like_columns(values: list[Any], test: Any) -> None:
    """A binary search in a sorted group finds what looking at each cell finds, for attributes and
    for qualifiers.
    """
    snapshot = graph(values)
    run, key = Run(snapshot), snapshot.predicate("key")
    attributes = snapshot.groups(0, snapshot.statements - snapshot.relations)
    for family, groups in (("att", attributes), ("q", snapshot.qualifier_groups(key))):
        ordered = snapshot.ordered(family)
        for kind, unit, low, high in groups:
            numbers = ordered.numbers(low, high).tolist()
            wanted = [low + i for i, number in enumerate(numbers) if holds(run, test, Cell(ordered, number))]
            found = as_places(sorted_matches(run, test, ordered, kind, unit, low, high)) if comparable(test, kind, unit) else []
            assert list(found) == wanted


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=6))
def test_ranges(pairs: list[tuple[int, int]]) -> None:
    begin = np.array([low for low, _ in pairs], np.int64)
    end = begin + np.array([length for _, length in pairs], np.int64)
    assert ranges(begin, end).tolist() == [i for low, length in pairs for i in range(low, low + length)]


@given(st.lists(st.integers(0, 4000), max_size=300), st.sampled_from([4001, 100_000]))
def test_distinct(numbers: list[int], size: int) -> None:
    """By sorting and by marking."""
    assert distinct(np.array(numbers, np.int32), size).tolist() == sorted(set(numbers))


def test_nothing_refers_in_a_circle() -> None:
    """What an answer holds goes with it, and is no work for the garbage collector."""
    snapshot = graph([Quantity(3), Quantity(5), Time.year(1960), "a"])
    found = Graph.of(snapshot)
    programs = (
        'FindAll() FilterNum("key", "4", "<") QueryAttr("key")',
        'Find("e0") Relate("rel", "forward") QueryName()',
        'FindAll() SelectAmong("key", "largest")',
        'Find("e1") Relate("rel", "forward") QFilterNum("key", "5", "=") Count()',
        'Find("e1") QueryAttr("key") VerifyNum("5", "=")',
    )
    for program in programs:
        assert found.kopl(program).texts
    gc.collect()
    gc.disable()
    try:
        for program in programs:
            answer = found.kopl(program)
            assert answer.texts
            assert answer.warnings is not None
            del answer
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_messages_say_where() -> None:
    """The position is that of the text, also in programs that are read plainly."""
    found = condgraph.open("memory:")
    found.add([Statement("e", "height", Quantity(3, "metre"))])
    program = 'Find("e") QueryAttr("hight")'
    with pytest.raises(UnknownNameError) as unknown:
        found.kopl(program)
    assert unknown.value.span is not None
    assert program[slice(*unknown.value.span)] == '"hight"'
    program = "FindAll() FilterNum(height, three metre, =) Count()"
    with pytest.raises(LiteralError) as literal:
        found.kopl(program)
    assert literal.value.span is not None
    assert program[slice(*literal.value.span)] == "three metre"


@pytest.mark.parametrize(
    ("function", "inputs", "said", "form"),
    [
        ("FilterYear", ["released"], "takes 3 arguments (key, value, op) and has 1", "FilterYear(attribute, value, operator)"),
        ("FindAll", ["x"], "takes 0 arguments (none) and has 1", "FindAll()"),
        ("What", ["x", "y"], "takes 0 arguments (none) and has 2", "What()"),
    ],
)
def test_steps_as_json_with_other_arguments_say_their_form(function: str, inputs: list[str], said: str, form: str) -> None:
    """It was a KeyError of the place that the message names."""
    program = [{"function": "FindAll", "inputs": []}, {"function": function, "inputs": inputs}]
    found = condgraph.open("memory:")
    found.add([Statement("e", "height", Quantity(3, "metre"))])
    with pytest.raises(ParseError) as caught:
        found.kopl(program)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"step 1, {function},"), caught.value
    assert (caught.value.hint or "").startswith(f"write {form}")


def test_equal_scans_are_shared() -> None:
    """Also where their leaf is one operator already; parts that differ stay apart."""
    leaf = ByName(("a",))

    def scanned(predicate: str) -> Reached:
        return Reached(Scan(leaf, (predicate,), "subject", "object", "relation"))

    plan, order = optimise(Intersect((scanned("p"), Union((scanned("p"), scanned("q"))))))
    assert len(order) == 7
    assert plan == Intersect((scanned("p"), Union((scanned("p"), scanned("q")))))
    apart = common_subplans(Union((ById(("a",)), ById(("b",)))))
    assert isinstance(apart, Union)
    assert apart.parts[0] is not apart.parts[1]


@pytest.mark.parametrize("many", [3, 60])
def test_qualifiers_that_are_entities_are_found_by_name(many: int) -> None:
    """One by one where the facts are few, through their order where they are many."""
    found = condgraph.open("memory:")
    found.add([Statement(f"e{i}", "rel", Ref("o"), (("key", Ref(f"x{i % 3}")),)) for i in range(many)])
    for test, count in (("x1", many // 3), ("x", 0), ("x3", 0)):
        assert found.kopl(f"Find(o) Relate(rel, backward) QFilterStr(key, {test}) Count()").texts == [str(count)]
