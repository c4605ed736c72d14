"""Groups, their order and their limits, by hand: what is missing, several, mixed, equal or too
large.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from decimal import Decimal
from threading import Event
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import CancelledError, DeadlineError, PlanError, UnknownNameError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.engine.values import UNKNOWN, Quantity, Time

#: Who, by number: a team, points, when they joined, friends.
PEOPLE: list[dict[str, list[Any]]] = [
    {"team": [Ref("red")], "points": [Quantity(5)], "joined": [Time.day(1999, 5, 1)], "word": ["b"]},
    {"team": [Ref("red"), Ref("blue")], "points": [Quantity(7), Quantity(1)], "joined": [Time.year(1999)], "word": ["a"]},
    {"team": [Ref("blue")], "points": [Quantity(3, "kg")], "joined": [Time.month(2003, 2)], "word": ["B"]},
    {"team": [], "points": [Quantity(7)], "joined": [], "word": []},
    {"team": [Ref("other")], "points": ["many", Quantity(2, "kg"), Quantity(4, "kg")], "joined": ["soon"], "word": [UNKNOWN]},
]


@pytest.fixture(scope="module")
def graph() -> Graph:
    found = condgraph.open()
    items: list[Any] = [Entity("person", "person", EntityKind.CONCEPT)]
    for ident, name in (("red", "Red"), ("blue", "Blue"), ("other", "Blue")):
        items += [Entity(ident, name), Statement(ident, "town", "Oslo" if ident == "red" else "Rome")]
    for number, facts in enumerate(PEOPLE):
        items += [Entity(f"p{number}", "Ann" if number < 2 else f"Bo {number}"), Member(f"p{number}", "person")]
        for key, values in facts.items():
            items += [Statement(f"p{number}", key, value, (("since", Time.year(1990 + number)),)) for value in values]
    found.add(items)
    return found


def ask(graph: Graph, clause: str, program: str = "FindAll() FilterConcept(person)", **options: Any) -> Any:
    return graph.query(program, table=clause, **options)


def cells(graph: Graph, clause: str) -> list[tuple[str, ...]]:
    answer = ask(graph, clause)
    assert answer.check(full=True), clause
    found: list[tuple[str, ...]] = answer.cells
    return found


def test_several_and_no_values_of_a_key(graph: Graph) -> None:
    # Entities of one name are two groups; a row of two teams is in both, one of none in its own.
    assert cells(graph, "group by team") == [("Blue", "2"), ("Blue", "1"), ("Red", "2"), ("", "1")]
    assert [row[0].id if row[0] else None for row in ask(graph, "group by team").values] == ["blue", "other", "red", None]
    assert cells(graph, "group by name(team)") == [("Blue", "3"), ("Red", "2"), ("", "1")]
    # Two keys that begin alike are those of one team, and so is what is summed up.
    assert cells(graph, "group by team.town, team") == [
        ("Oslo", "Red", "2"),
        ("Rome", "Blue", "2"),
        ("Rome", "Blue", "1"),
        ("", "", "1"),
    ]
    assert cells(graph, "group by team show values(team.town), count(team.town), count(points)") == [
        ("Blue", "Rome", "2", "3"), ("Blue", "Rome", "1", "3"), ("Red", "Oslo", "2", "3"), ("", "", "0", "1"),
    ]  # fmt: skip
    assert cells(graph, "group by team@since show values(team)")[1] == ("1991", "Blue; Red")
    # Nobody counts twice in one group.
    assert cells(graph, "group by team.town show count(), sum(points)")[1] == ("Rome", "3", "9 kg")
    assert cells(graph, "where team is known group by team show count() limit 1") == [("Blue", "2")]


def test_values_that_are_equal_are_one(graph: Graph) -> None:
    found = condgraph.open()
    found.load([{"n": "1,000", "of": 1}, {"n": "1000", "of": 2}, {"n": "1e3", "of": 3}, {"n": "999", "of": 4}], name="rows")
    assert ask(found, "group by n show count()", "FindAll()").cells == [("999", "1"), ("1,000", "3")]
    assert ask(found, "show count(distinct n), values(n)", "FindAll()").cells == [("2", "999; 1,000")]


def test_sums_of_mixed_values(graph: Graph) -> None:
    answer = ask(graph, "group by team show sum(points), max(points), count(points)")
    assert answer.cells == [("Blue", "8", "7", "3"), ("Blue", "6 kg", "4 kg", "3"), ("Red", "13", "7", "3"), ("", "7", "7", "1")]
    wrong = "2 of 10 values are not of the most common type and unit of their group, and are left out"
    assert answer.warnings == [f"sum(points): {wrong}", f"max(points): {wrong}"]
    # Where all are one group, as without groups.
    assert ask(graph, "show sum(points)").cells == [("20",)]
    assert ask(graph, "show sum(points)").warnings == [
        "sum(points): 4 of 8 values are not numbers without a unit, and are left out"
    ]


def test_sums_of_nothing(graph: Graph) -> None:
    nothing = "where points > 1000 show count(), sum(points), mean(points), max(points), values(points)"
    answer = ask(graph, nothing)
    assert answer.values == [(0, Quantity(0), None, None, None)]
    assert answer.cells == [("0", "0", "", "", "")]
    assert any("mean(points): 1 group has no values" in warning for warning in answer.warnings)
    empty = ask(graph, "where points > 1000 group by team show count()")
    assert (empty.values, empty.columns, empty.data()) == ([], ("team", "count()"), [])
    assert empty.warnings[-1].startswith("the answer is empty: group by returned nothing")
    assert ask(graph, "show points, sum(joined)", "Find(Red)").cells == [("", "0")]


def test_order_with_what_does_not_compete(graph: Graph) -> None:
    up = ask(graph, "show self, max(joined) as j order by j")
    assert [row[1] for row in up.cells] == ["1999", "1999-05-01", "2003-02", "soon", ""]
    down = ask(graph, "show self, max(joined) as j order by j desc")
    assert [row[1] for row in down.cells] == ["2003-02", "1999", "1999-05-01", "soon", ""]
    assert "order by j: 1 cell is not a time, and is sorted last" in down.warnings
    words = [row[0] for row in ask(graph, "show word order by word").cells]
    assert words == ["B", "a", "b", "unknown", ""]


def test_ties(graph: Graph) -> None:
    few = ask(graph, "group by team show count() as n order by n desc limit 1")
    assert few.cells == [("Blue", "2")]
    assert "limit 1: 1 more row ties with the last one shown" in few.warnings
    assert ask(graph, "group by team show count() as n order by n desc limit 1 with ties").cells == [("Blue", "2"), ("Red", "2")]
    # Without an order nothing is equal.
    assert ask(graph, "group by team limit 1").warnings == []
    assert ask(graph, "group by team limit 0").values == []
    assert ask(graph, "group by team limit 5 offset 3").cells == [("", "1")]
    best = ask(graph, "show top(1, points), bottom(1, points)")
    assert best.values[0][0].id == "p1"
    assert any("more rows that tie with the last one shown" in warning for warning in best.warnings)


def test_calculated(graph: Graph) -> None:
    # Two points and one: which belong together is not said.
    answer = ask(graph, "show self, values(points * points) as square")
    assert [row[1] for row in answer.cells][:4] == ["25", "1; 49", "", "49"]
    several = ask(graph, "show sum(points - since) as x", "FindAll() FilterConcept(person)", on_unknown="empty")
    assert several.values == [(Quantity(0),)]
    assert ask(graph, "show sum(points / 0)").warnings[0].startswith("points / 0: divided by 0")
    found = condgraph.open()
    found.load([{"a": "2", "b": "3"}, {"a": "0.1", "b": "0.2"}, {"a": "x", "b": "1"}, {"a": None, "b": "1"}], name="rows")
    answer = ask(found, "show sum(a * b + 1) as s, sum(a / b) as d", "FindAll()")
    # A quotient is the nearest float; sums of what these print are exact.
    assert answer.cells == [("8.02", "1.1666666666666666")]
    assert answer.warnings == ["a * b: no number: 1 value is left out", "a / b: no number: 1 value is left out"]


def test_parts_of_times(graph: Graph) -> None:
    assert cells(graph, "where year(joined) is known group by year(joined)") == [("1999", "2"), ("2003", "1")]
    answer = ask(graph, "group by month(joined)")
    assert answer.cells == [("2", "1"), ("5", "1"), ("", "3")]
    assert "month(joined): no month in the time: 1 value is left out" in answer.warnings


def test_facts_as_rows(graph: Graph) -> None:
    answer = ask(graph, "group by @since show count(), values(self)", "FindAll() FilterConcept(person) Relate(team, forward)")
    assert answer.cells == [("1990", "1", "Red"), ("1991", "2", "Blue; Red"), ("1992", "1", "Blue"), ("1994", "1", "Blue")]
    assert answer.check()
    assert ask(graph, "group by team@since show count()").cells[0] == ("1990", "1")


def test_sums_within_a_row(graph: Graph) -> None:
    """Each row sums up what it has itself; a count of nothing is 0, a mean of nothing no value."""
    assert cells(graph, "where count(team) > 1 show self") == [("Ann",)]
    assert cells(graph, "where count(team) = 0 or count(word) = 0 show self") == [("Bo 3",)]
    assert cells(graph, "group by count(team) show count(), values(self)") == [
        ("0", "1", "Bo 3"),
        ("1", "3", "Ann; Bo 2; Bo 4"),
        ("2", "1", "Ann"),
    ]
    # (1 + 2 + 1 + 0 + 1) / 5 teams; the row of two is once in a sum of all, and in both of its groups.
    assert cells(graph, "show mean(count(team)), sum(count(team)), max(count(distinct team.town))") == [("1", "5", "2")]
    assert cells(graph, "group by name(team) show sum(count(team))") == [("Blue", "4"), ("Red", "3"), ("", "0")]
    assert cells(graph, "where max(points) - min(points) >= 6 show self") == [("Ann",)]
    assert cells(graph, "where count(team) + count(points) > 3 show self, sum(points)") == [("Ann", "8"), ("Bo 4", "6 kg")]
    answer = ask(graph, "where mean(word) > 0 show count()")
    assert answer.values == [(0,)]
    assert any("mean(word)" in warning and "rows have no values" in warning for warning in answer.warnings), answer.warnings
    found = ask(graph, "show mean(count(@since)), count()", "FindAll() FilterConcept(person) Relate(team, forward)")
    assert found.values == [(Quantity(1), 5)]
    assert found.check(full=True)


def test_parts_of_texts(graph: Graph) -> None:
    """As written, but for white space; entities by name, what is no text is left out."""
    assert cells(graph, "where name(team) starts with 'Bl' show count()") == [("3",)]
    assert cells(graph, "where self contains 'o 3' show self") == [("Bo 3",)]
    assert cells(graph, "where self contains 'O 3' or self ends with '  4' show self") == [("Bo 4",)]
    assert cells(graph, "where self not contains ' ' show count()") == [("2",)]
    assert cells(graph, "group by word having word contains 'b'") == [("b", "1")]
    answer = ask(graph, "where points contains '7' or points ends with 'y' show self")
    assert answer.cells == [("Bo 4",)]
    assert any("cannot be compared with a text" in warning for warning in answer.warnings)
    # No reading of a text as a number or a time stands in for it.
    assert ask(graph, "where joined starts with '1999' show count()").values == [(0,)]
    found = ask(graph, "where @since is known and self contains 'Blu' show count()", "FindAll() Relate(team, forward)")
    assert found.values == [(3,)]
    assert found.check(full=True)


def test_huge_numbers(graph: Graph) -> None:
    found = condgraph.open()
    numbers = [10**40, -(10**40), 2**53 + 1, 2**53, Decimal("0.1000000000000000055511151231257827")]
    found.add([Statement(f"e{at}", "n", Quantity(number)) for at, number in enumerate(numbers)])
    assert ask(found, "show sum(n), max(n), min(n)", "FindAll()").values[0][1:] == (Quantity(10**40), Quantity(-(10**40)))
    listed = ask(found, "show n order by n desc limit 3", "FindAll()").values
    assert [row[0].number for row in listed] == [10**40, 2**53 + 1, 2**53]


def test_answers_as_tables(graph: Graph) -> None:
    answer = ask(graph, "group by team show count(), max(points), max(joined), top(2, points)")
    first, other = answer.data()[0], answer.data()[1]
    assert first == {
        "team": "Blue", "team id": "blue", "count()": 2, "max(points)": 7.0, "max(points) unit": None, "max(joined)": "2003-02",
        "top(2, points)": ["Ann"],
    }  # fmt: skip
    assert (other["max(points)"], other["max(points) unit"], other["max(joined)"]) == (4.0, "kg", "soon")
    types = ["string", "string", "int64", "double", "string", "string", "list<item: string>"]
    assert [str(field.type) for field in answer.to_arrow().schema] == types
    assert answer.to_pandas().shape == (4, 7)
    page = answer._repr_html_()
    assert "<th>max(points)</th>" in page
    assert "<td>2003-02</td>" in page
    assert [entity.id for entity in answer.entities] == ["p0", "p1", "blue", "other", "p3", "p4", "red"]
    assert len(answer) == 4
    assert str(answer).startswith("Blue | 2 | 7 | 2003-02 | Ann")
    limited = ask(graph, "group by team", limit=2)
    assert (len(limited.values), len(limited.cells), limited.cut) == (2, 2, 2)


def test_evidence_of_one_row(graph: Graph) -> None:
    answer = ask(graph, "group by team show count(), sum(points) having count() > 1 order by team desc")
    assert answer.cells[0][0] == "Red"
    subjects = {fact.subject.id for fact in answer.evidence_of(0)}
    assert subjects == {"p0", "p1"}
    assert {fact.subject.id for fact in answer.evidence} == {"p0", "p1", "p2", "p3", "p4"}
    # A graph of it alone has that row, as it was.
    alone = condgraph.open()
    alone.add(answer.evidence_of(0).items())
    assert ("Red", "2", "13") in ask(alone, "group by team show count(), sum(points)").cells
    for row in (5, -1):
        with pytest.raises(IndexError, match="no row"):
            answer.evidence_of(row)
    first = graph.query("FindAll()", table="group by team", limit=1)
    assert first.evidence_of(0)
    with pytest.raises(IndexError, match="no row 1"):
        first.evidence_of(1)
    with pytest.raises(PlanError, match="only the rows of a table"):
        graph.kopl("FindAll() Count()").evidence_of(0)


def test_deadlines_and_cancellation(graph: Graph) -> None:
    found = condgraph.open()
    found.add([Statement(f"e{at}", "n", Quantity(at)) for at in range(20_000)])
    with pytest.raises(DeadlineError):
        ask(found, "group by n show top(2, n), sum(n * n)", "FindAll()", timeout=0.01)
    stop = Event()
    stop.set()
    with pytest.raises(CancelledError):
        ask(found, "group by n", "FindAll()", cancelled=stop)


@pytest.mark.slow
def test_one_row_in_too_many_groups() -> None:
    found = condgraph.open()
    found.add([Statement("e", key, str(at)) for key in ("a", "b", "c") for at in range(220)])
    assert len(ask(found, "group by a, b", "FindAll()").values) == 48_400
    with pytest.raises(PlanError, match="10,648,000 ways from rows to keys are too many"):
        ask(found, "group by a, b, c", "FindAll()")


def test_a_row_is_counted_once_in_each_group() -> None:
    found = condgraph.open("memory:")
    ages = {"a": 30, "b": 20, "c": 20, "d": 40, "e": 25}
    found.add([Statement(name, "age", Quantity(age)) for name, age in ages.items()])
    found.add([Statement(name, "knows", Ref(other)) for name, other in ("ab", "ac", "ae", "db", "de", "dc")])
    assert ask(found, "where knows is known group by knows.age show count(), mean(age)", "FindAll()").cells == [
        ("20", "2", "35"),
        ("25", "2", "35"),
    ]


_TIMES = [{"k": "a", "x": "5", "d": "2024-01-05 10:30:00", "e": "2024-02-01"}, {"k": "b", "x": "20", "d": "", "e": "2024-02-03"}]


@pytest.mark.parametrize("clause", ["show week(d)", "show DATE_DIFF(d)", "show e + 1", "show x - d"])
def test_what_there_is_of_times(clause: str) -> None:
    found = condgraph.open("memory:")
    found.load(_TIMES, name="t", key="k")
    with pytest.raises(PlanError, match=r"times have year\(x\), quarter\(x\), month\(x\), .*, differences \(ended - started\)"):
        found.query("FindAll()", table=clause)
    with pytest.raises(UnknownNameError, match="of times there are extract_year"):
        found.query("Query1: \"weekday('2024-02-01')\"")


@pytest.mark.parametrize(
    ("clause", "cells"),
    [
        ("show k, quarter(d), weekday(d), hour(d), minute(d), second(d)", [("a", "1", "5", "10", "30", "0"), ("b", *[""] * 5)]),
        ("group by weekday(e) show count()", [("4", "1"), ("6", "1")]),
        ("show e - d, d - e, e - e", [("26.5625 day", "-26.5625 day", "0 day"), ("", "", "0 day")]),
        ("where e - d > 3 show k", [("a",)]),
        ("where e - d > 27 days show k", []),
        ("where e - d > 637 hours show k", [("a",)]),
        ("group by k show sum(e - d) as wait having wait > 26", [("a", "26.5625 day")]),
        ("show max(e - d), mean(weekday(e))", [("26.5625 day", "5")]),
    ],
)
def test_parts_and_differences_of_times(clause: str, cells: list[tuple[str, ...]]) -> None:
    found = condgraph.open("memory:")
    found.load(_TIMES, name="t", key="k")
    assert found.query("FindAll() FilterConcept(t)", table=clause).cells == cells


def test_parts_that_a_time_does_not_have() -> None:
    found = condgraph.open("memory:")
    found.load([{"k": "a", "d": "2024-02-01"}, {"k": "b", "d": "2024-02-01 08:00:00"}], name="t", key="k")
    answer = found.query("FindAll() FilterConcept(t)", table="show k, hour(d)")
    assert answer.cells == [("a", ""), ("b", "8")]
    assert answer.warnings == ["hour(d): no hour in the time: 1 value is left out"]


@pytest.mark.parametrize("seed", range(3))
def test_parts_of_times_are_those_of_duckdb(seed: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    draw = random.Random(seed)
    moments = [datetime(1583, 1, 1) + timedelta(seconds=draw.randrange(30 * 10**9)) for _ in range(200)]
    found = condgraph.open("memory:")
    found.load([{"k": f"r{at:03}", "d": str(moment)} for at, moment in enumerate(moments)], name="t", key="k")
    parts = ("year", "quarter", "month", "day", "hour", "minute", "second")
    table = found.query("FindAll() FilterConcept(t)", table=f"show {', '.join(f'{part}(d)' for part in (*parts, 'weekday'))}")
    ours = [tuple(cell.number for cell in row) for row in table.values]
    columns = ", ".join(f"{part}(d)" for part in (*parts, "isodow"))
    connection = duckdb.connect()
    connection.execute("create table t(d timestamp)")
    connection.executemany("insert into t values (?)", [[moment] for moment in moments])
    assert ours == connection.execute(f"select {columns} from t").fetchall()


@pytest.mark.parametrize("seed", range(4))
def test_the_first_of_each_group_are_those_of_duckdb(seed: int) -> None:
    duckdb = pytest.importorskip("duckdb")
    draw = random.Random(seed)
    rows = [(f"r{at:03}", draw.choice("abc"), draw.choice(["x", "y", None]), draw.randrange(6)) for at in range(60)]
    found = condgraph.open("memory:")
    names = ("k", "g", "h", "n")
    found.load(
        [{name: "" if cell is None else str(cell) for name, cell in zip(names, row, strict=True)} for row in rows],
        name="t",
        key="k",
    )
    connection = duckdb.connect()
    connection.execute("create table t(k text, g text, h text, n int)")
    connection.executemany("insert into t values (?, ?, ?, ?)", rows)
    for number, offset, per in ((1, 0, "g"), (2, 0, "g"), (2, 1, "g, h"), (3, 0, "h"), (0, 0, "g")):
        clause = f"show k, n order by n desc, k limit {number} per {per}" + (f" offset {offset}" if offset else "")
        table = found.query("FindAll() FilterConcept(t)", table=clause)
        inner = f"row_number() over (partition by {per} order by n desc, k)"
        sql = f"select k, n from t qualify {inner} > {offset} and {inner} <= {offset + number} order by n desc, k"
        assert [(k, n.number) for k, n in table.values] == connection.execute(sql).fetchall()
        tied = found.query("FindAll() FilterConcept(t)", table=f"show k, n order by n desc limit {number} per {per} with ties")
        rank = f"rank() over (partition by {per} order by n desc)"
        equal = connection.execute(f"select k, n from t qualify {rank} <= {number} order by n desc, k").fetchall()
        assert [(k, n.number) for k, n in tied.values] == equal
        assert number == 0 or not tied.warnings


def test_the_first_of_each_group_say_what_they_cut() -> None:
    found = condgraph.open("memory:")
    found.load([{"k": f"r{at}", "g": "ab"[at % 2], "n": str(at // 4)} for at in range(8)], name="t", key="k")
    answer = found.query("FindAll() FilterConcept(t)", table="show k, g order by n limit 1 per g")
    assert answer.cells == [("r0", "a"), ("r1", "b")]
    assert answer.warnings == ["limit 1: 2 groups have more rows that tie with the last one shown"]
    built = found.table("FindAll() FilterConcept(t)").show("k", "g").order("-n", "k").limit(1, per="g").ask()
    assert built.cells == [("r4", "a"), ("r5", "b")]
    assert found.query("FindAll() FilterConcept(t)", table="group by g, n show count() limit 1 per g").cells == [
        ("a", "0", "2"),
        ("b", "0", "2"),
    ]
    with pytest.raises(UnknownNameError, match="'h'"):
        found.query("FindAll() FilterConcept(t)", table="show k limit 1 per h")


def test_warnings_are_printed_with_the_answer() -> None:
    found = condgraph.open("memory:")
    found.load(_TIMES, name="t", key="k")
    answer = found.query("FindAll() FilterNum(x, 10 km, >) QueryName()")
    assert str(answer).splitlines() == [
        "warning: 2 values (quantity without a unit) cannot be compared with a quantity in km and are left out",
        "warning: the answer is empty: FilterNum returned nothing, Where(> 10 km); the values of 'x' are quantity, "
        "and are compared with quantity in km; with 'x' > 10: 1 result (b)",
    ]
    assert str(found.query("FindAll() FilterNum(x, 10, >) QueryName()")) == "b"


#: Tables over numbers of more digits than a float has, with their rows.
LONG = "123456789012345678901234567890.12"
DIGITS = {
    "show sum(x), mean(x), max(x)": [("123456789012345678901234567890.52", "41152263004115226300411522630.173333", LONG)],
    "group by g show sum(x), mean(x)": [
        ("a", "123456789012345678901234567890.22", "61728394506172839450617283945.11"),
        ("b", "0.3", "0.3"),
    ],
    "show self, x + 0.1 limit 1": [("1", "123456789012345678901234567890.22")],
    "show sum(y), mean(y)": [("1234567890123456.59", "411522630041152.2")],
}


def long_numbers() -> Graph:
    found = condgraph.open("memory:")
    rows = [
        {"k": 1, "g": "a", "x": LONG, "y": "1234567890123456.25"},
        {"k": 2, "g": "a", "x": "0.1", "y": "0.12"},
        {"k": 3, "g": "b", "x": "0.3", "y": "0.22"},
    ]
    found.load(rows, name="t", key="k")
    return found


@pytest.mark.parametrize("engine", ["snapshot", "sparql"])
def test_sums_keep_their_digits(engine: str) -> None:
    found = long_numbers()
    for clause, rows in DIGITS.items():
        assert found.query("FindAll()", table=clause, engine=engine).cells == rows, clause
    program = "Query1: \"get_information(relation='x')\"\nQuery2: \"sum(set='output_of_query1')\""
    assert found.query(program, engine=engine).texts == ["123456789012345678901234567890.52"]
