"""Table clauses: how they are read, what is wrong with them, and how they are put on top of
programs.
"""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

import condgraph
from condgraph import CondgraphError, Graph
from condgraph.engine.errors import OptionError, ParseError, PlanError, UnknownNameError
from condgraph.engine.values import Quantity
from condgraph.languages.table.clause import parse
from condgraph.languages.table.tree import Call, Comparison, Junction, Number, OrderBy, Path, Step
from tests.support import column_names
from tests.support.pace import quick_enough


@pytest.fixture(scope="module")
def graph() -> Graph:
    found = condgraph.open()
    rows = [("Ann", "Oslo", 3), ("Bo", "Rome", 5), ("Cy", "Oslo", 7)]
    found.load([{"id": name, "city": city, "order": number, "unit-price": number} for name, city, number in rows], name="people")
    return found


def test_a_whole_clause() -> None:
    text = "WHERE a.b = 'x' group by ^c.d as e select count(*), top(2, f g) having count() > 5 kg "
    text += "order by -e limit 3 with ties offset 1"
    found = parse(text)
    assert isinstance(found.where, Comparison)
    assert isinstance(found.where.of, Path)
    assert found.where.of.steps == (Step("a"), Step("b"))
    assert found.where.literals[0].text == "x"
    assert isinstance(found.keys[0].of, Path)
    assert found.keys[0].of.steps == (Step("c", backward=True), Step("d"))
    assert found.keys[0].name == "e"
    counted, best = (column.of for column in found.shown)
    assert isinstance(counted, Call)
    assert (counted.function, counted.of) == ("count", None)
    assert isinstance(best, Call)
    assert (best.number, best.of) == (2, Path((Step("f g"),), None, best.of.span))  # type: ignore[union-attr]
    assert isinstance(found.having, Comparison)
    assert isinstance(found.having.literals[0], Number)
    assert (found.having.literals[0].text, found.having.literals[0].unit) == ("5", "kg")
    assert [(type(by), by.descending) for by in found.order] == [(OrderBy, True)]
    assert (found.limit, found.offset, found.ties) == (3, 1, True)


def test_words_that_join() -> None:
    found = parse("where a = 1 or b = 2 and not (c = 3 or d is not null)").where
    assert isinstance(found, Junction)
    assert found.word == "or"
    both = found.tests[1]
    assert isinstance(both, Junction)
    assert [both.word, *(test.word for test in both.tests if isinstance(test, Junction))] == ["and", "not"]
    # Parentheses around numbers are no parentheses around tests.
    assert isinstance(parse("where (a + b) * 2 > 3").where, Comparison)


def test_parts_of_texts() -> None:
    for words in ("contains", "starts with", "ENDS  with"):
        found = parse(f"where a {words} 'it''s ' and not b = 1").where
        assert isinstance(found, Junction)
        of = found.tests[0]
        assert isinstance(of, Comparison)
        assert (of.operator, of.literals[0].text) == (" ".join(words.casefold().split()), "it's ")
    no = parse("having values(x) not contains 'y'").having
    assert isinstance(no, Junction)
    assert (no.word, len(no.tests)) == ("not", 1)
    # Columns may be called so.
    for name in ("contains", "starts", "ends", "date contains"):
        (column,) = parse(f"where {name} = 1 show {name}").shown
        assert isinstance(column.of, Path)
        assert column.of.steps == (Step(name),)
    start = parse("where starts starts with 'a' or contains contains 'b'").where
    assert isinstance(start, Junction)
    assert [test.of.steps for test in start.tests] == [(Step("starts"),), (Step("contains"),)]  # type: ignore[union-attr]


WRONG = [
    ("group country", ParseError, "'by' is missing before 'country'"),
    ("show", ParseError, "the clause ends where a name should be"),
    ("sum(x)", ParseError, "begins no part of a table"),
    ("show a show b", ParseError, "stands twice"),
    ("having city", ParseError, "a comparison is missing"),
    ("having city = Oslo", ParseError, "a text between single quotes, is missing"),
    ("where city contains Oslo", ParseError, "a comparison is missing"),
    ("where city starts with 5", ParseError, "a comparison is missing"),
    ("where city contains ('a', 'b')", ParseError, "a comparison is missing"),
    ("where city in ()", ParseError, "is missing"),
    ("show count(", ParseError, ""),
    ("limit many", ParseError, "a whole number"),
    ("limit 1.5", ParseError, "a whole number"),
    ("show 'a", ParseError, "has no meaning"),
    ("show a; b", ParseError, "';' has no meaning"),
    ("show " + "(" * 60 + "a" + ")" * 60, ParseError, "within each other"),
    ("show " + ".".join("a" * 60), ParseError, "more than 40 steps"),
    ("show " + "+".join("a" * 60), ParseError, "more than 40 numbers"),
    ("show x" * 10_000, ParseError, "too long"),
    ("group by cty", UnknownNameError, "unknown column 'cty'"),
    ("group by city.name", UnknownNameError, "nothing follows its values"),
    ("group by ^city", UnknownNameError, "lead nowhere"),
    ("group by city@since", UnknownNameError, "unknown qualifier 'since'"),
    ("group by city show summ(id)", UnknownNameError, "unknown function 'summ'"),
    ("group by city show id", PlanError, "neither grouped by nor summed up"),
    ("group by city show count(), count()", PlanError, "two columns are called"),
    ("group by city order by id", PlanError, "is not a column of the table"),
    ("group by city show sum(count())", PlanError, "sums up a group"),
    ("where count() > 2 show id", PlanError, "sums up a group"),
    ("where sum(count(city)) > 2 show id", PlanError, "sums up a group"),
    ("show sum(sum(count(city)))", PlanError, "sums up a group"),
    ("where values(city) = 'Oslo' show id", PlanError, "no place within a row"),
    ("where top(2, city) = 'Oslo' show id", PlanError, "no place within a row"),
    # Whether of a row or of all rows, nothing says.
    ("show sum(id) / count(id)", PlanError, "sums up a group"),
    ("group by city show sum(id) / count(id)", PlanError, "sums up a group"),
    ("group by city show sum()", PlanError, "sum of what?"),
    ("group by city show top(id)", PlanError, "takes how many"),
    ("group by city show sum(2, id)", PlanError, "takes one expression"),
    ("group by @city", PlanError, "begins with @"),
    ("show sum(distinct id)", PlanError, "takes no distinct"),
]


@pytest.mark.parametrize(("clause", "kind", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong(graph: Graph, clause: str, kind: type[CondgraphError], said: str) -> None:
    with pytest.raises(kind) as error:
        graph.query("FindAll()", table=clause)
    assert said in str(error.value)
    # The place is one in the clause, which the message says; spans are places in the program.
    assert error.value.span is None
    assert len(str(error.value)) < 3_000


def test_names_of_any_kind(graph: Graph) -> None:
    answer = graph.query("FindAll()", table='where `order` > 3 show "unit-price", sum(`order` * 2) as twice order by twice desc')
    assert answer.values == [(Quantity(7), Quantity(14)), (Quantity(5), Quantity(10))]


@pytest.mark.parametrize(
    ("clause", "cells"),
    [
        ("group by kind show sum(length) as total having total > 1 km", [("x", "1600 m")]),
        ("group by kind show sum(length) as total having total > '1 km'", [("x", "1600 m")]),
        ("group by kind show min(length) as kind2, max(length) as length having length < 0.5 km", [("y", "300 m", "300 m")]),
        ("show name as n, length as l having l >= 0.9 km", [("a", "900 m")]),
        ("group by length as l show count() having l < 0.5 km", [("300 m", "1")]),
    ],
)
def test_columns_called_something_else_are_compared_in_other_units(clause: str, cells: list[tuple[str, ...]]) -> None:
    """Only paths and sums were: of `total > 1 km` nothing was left, without a word."""
    pytest.importorskip("pint")
    found = condgraph.open()
    lengths = (("a", "x", "900 m"), ("b", "x", "700 m"), ("c", "y", "300 m"))
    found.load([{"name": name, "kind": kind, "length": length} for name, kind, length in lengths], name="roads", key="name")
    assert found.query("FindAll()", table=clause).cells == cells


DEALS = [
    {"id": "a", "worth": "$1.2M", "part": "12%", "since": "5 May 2021", "note": "10%"},
    {"id": "b", "worth": "$900,000", "part": "7.5%", "since": "2020-03-01", "note": "x"},
    {"id": "c", "worth": "$2,000,000", "part": "-3%", "since": "1 June 2022", "note": "y"},
]


@pytest.mark.parametrize(
    ("test", "found"),
    [
        ("worth >= '$1.2M'", "ac"),
        ("worth = '$1,200,000'", "a"),
        ("worth in ('$900k', '$2,000,000')", "bc"),
        ("part < '10%'", "bc"),
        ("since > '5 May 2021'", "c"),
        ("since = 'May 2021'", "a"),
        ("since = '5/6/2021'", ""),  # either of two days
        ("note = '10%'", "a"),
        ("note = '10'", ""),
    ],
)
def test_a_quoted_literal_may_be_what_a_cell_may_be(test: str, found: str) -> None:
    graph = condgraph.open()
    graph.load(DEALS, name="deals", key="id", types={"note": "text"})
    answer = graph.query("FindAll()", table=f"where {test} show id")
    assert "".join(row[0] for row in answer.cells) == found
    assert answer.check()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("FindAll() QueryAttr(city)", "the program gives values"),
        ("FindAll() Count()", "the program gives a single result"),
        ("(UNKNOWN a) -[city]-> (UNKNOWN b)", "takes no option 'table'"),
    ],
)
def test_programs_without_rows(graph: Graph, program: str, said: str) -> None:
    with pytest.raises(CondgraphError, match=said):
        graph.query(program, table="show count()")


def test_step_by_step(graph: Graph) -> None:
    start = graph.table().where("city is known")
    towns = start.group("city").show("count() as n", "sum(`order`) as total")
    answer = towns.having("n > 1").having("total > 3").order("-total").limit(1).ask()
    assert answer.cells == [("Oslo", "2", "10")]
    # Every step is a new one.
    assert len(towns.ask().values) == 2
    assert len(start.show("self").limit(2, offset=2).ask(timeout=5).values) == 1
    assert "Group" in towns.explain()
    assert graph.query("FindAll() QueryName()", table=towns).values == towns.ask().values
    for call in (
        lambda: towns.limit(-1),
        lambda: towns.limit("3"),
        lambda: towns.group(3),
        lambda: graph.query("FindAll()", table=3),
    ):
        with pytest.raises(OptionError):
            call()  # type: ignore[no-untyped-call]
    with pytest.raises(ParseError, match="at character 1 of the table"):
        towns.order("desc")


@pytest.fixture(scope="module")
def crowd() -> Graph:
    return column_names.crowd()


@pytest.mark.parametrize(("program", "clause", "expected"), column_names.QUESTIONS)
def test_columns_are_those_of_the_rows(crowd: Graph, program: str, clause: str, expected: list[tuple[str, ...]] | str) -> None:
    if isinstance(expected, list):
        answer = crowd.query(program, table=clause)
        assert answer.cells == expected
        assert answer.warnings == []
        assert answer.check()
        assert all(answer.evidence_of(row) is not None for row in range(len(expected)))
    else:
        with pytest.raises(UnknownNameError) as caught:
            crowd.query(program, table=clause)
        assert expected in str(caught.value)
        if "height" not in clause:
            return
        # The nearest are columns of these rows, and with on_unknown="empty" the same is a warning.
        assert "members" not in caught.value.candidates
        warned = crowd.query(program, table=clause, on_unknown="empty").warnings
        assert any("; it matches nothing" in warning for warning in warned)


@pytest.mark.parametrize(("program", "clause", "warnings"), column_names.UNSURE)
def test_a_column_that_certain_rows_lack_is_a_warning(crowd: Graph, program: str, clause: str, warnings: list[str]) -> None:
    assert crowd.query(program, table=clause).warnings == warnings


@given(st.text(alphabet="ab '\"`()<>=,.^@*+-/1 5groupbyshowhavinglimt\n", max_size=60))
def test_any_text_is_a_clause_or_a_typed_error(text: str) -> None:
    try:
        parse(text)
    except ParseError as error:
        place = error.span
    else:
        return
    assert place is not None
    assert 0 <= place[0] <= len(text)


def test_a_megabyte_of_nonsense_is_refused_at_once() -> None:
    begin = time.process_time()
    for text in ("(" * 1_000_000, "'" * 1_000_001, "a." * 500_000, "show " + "not " * 250_000, "`" * 1_000_001):
        with pytest.raises(ParseError):
            parse(text)
    # The longest that are read.
    for text in ("(" * 20_000, "where " + "not " * 4_900, "show " + "a," * 9_000, "show " + "(a," * 5_000, "where " + "(" * 19_000):
        with pytest.raises(ParseError):
            parse(text)
    assert quick_enough(time.process_time() - begin, 2)
