"""Allen's relations, the one before and after, gaps, overlaps and lengths, against all times that statements may have."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import condgraph
from condgraph.cli.app import app
from condgraph.engine.allen import NEVER_AFTER, NEVER_BEFORE, RELATIONS, Bounds
from condgraph.engine.errors import OptionError, PlanError, UnknownNameError
from condgraph.engine.facts import Entity, Ref, Source, Statement
from condgraph.engine.records import Evidence
from condgraph.engine.values import DAY_SECONDS, UNKNOWN, Time
from condgraph.timeline import Lasting, Timeline
from tests.support.lanes import by_lane
from tests.support.stores import empty_graph, marked

DAY = Time.day


def allen(a: int, b: int, c: int, d: int) -> str:
    """The relation of [a, b) to [c, d), by its usual definition."""
    if b < c:
        return "before"
    if b == c:
        return "meets"
    if a == c:
        return "equals" if b == d else "starts" if b < d else "started by"
    if b == d:
        return "finishes" if a > c else "finished by"
    if a < c:
        return "contains" if b > d else "overlaps"
    if b < d:
        return "during"
    return {True: "overlapped by", False: "met by" if a == d else "after"}[a < d]


def spans(bounds: Bounds) -> list[tuple[int, int]]:
    """Every interval that bounds allow."""
    starts, ends = (range(side[0], side[1] + 1) for side in (bounds.start, bounds.end))
    return [(start, end) for start, end in product(starts, ends) if start < end]


def some_bounds(dice: random.Random) -> Bounds:
    while True:
        numbers = sorted(dice.randint(10, 17) for _ in range(4))
        if dice.random() < 0.5:
            numbers[1], numbers[2] = numbers[2], numbers[1]
        bounds = Bounds((min(numbers[:2]), max(numbers[:2])), (min(numbers[2:]), max(numbers[2:])))
        # As `Bounds.stated` makes them.
        start = bounds.start[0], min(bounds.start[1], bounds.end[1] - 1)
        end = max(bounds.end[0], bounds.start[0] + 1), bounds.end[1]
        if start[0] <= start[1] and end[0] <= end[1]:
            return Bounds(start, end)


def test_relations_are_those_of_all_intervals_that_may_be() -> None:
    dice, seen = random.Random(3), set()
    for _ in range(by_lane(1_500, 6_000, 60_000)):
        one, other = some_bounds(dice), some_bounds(dice)
        possible = {allen(*a, *b) for a in spans(one) for b in spans(other)}
        assert set(one.relations(other)) == possible, (one, other)
        moments = {a[0] < b[1] and b[0] < a[1] for a in spans(one) for b in spans(other)}
        assert one.together(other) == (None if len(moments) == 2 else moments.pop()), (one, other)
        lengths = [end - start for start, end in spans(one)]
        assert one.longest() == max(lengths) / DAY_SECONDS
        seen |= possible
    assert seen == set(RELATIONS)


def evidence(name: str, bounds_of: Any) -> Lasting:
    end = Entity(name, name)
    return Lasting(Evidence(Entity("x", "x"), "p", end, (), ((Source("s"), 0),)), bounds_of)


def timeline_of(several: list[Lasting]) -> Timeline:
    made = Timeline([])
    made._items = tuple(sorted(several, key=lambda one: (one.bounds.start, one.bounds.end, str(one.statement))))
    return made


def test_before_after_gaps_and_overlaps_are_those_of_all_times_that_may_be() -> None:
    """Three statements: every choice of their ends says which is the one before, what overlaps and what is a gap."""
    dice, unique = random.Random(5), 0
    for _ in range(by_lane(120, 600, 6_000)):
        every = [evidence(name, some_bounds(dice)) for name in "abc"]
        line = timeline_of(every)
        choices = [dict(zip("abc", ends, strict=True)) for ends in product(*(spans(one.bounds)[:40] for one in every))]
        # All starts count, and the ends do not matter to the order.
        starts = [
            dict(zip("abc", ends, strict=True)) for ends in product(*(sorted({s for s, _ in spans(one.bounds)}) for one in every))
        ]
        for one in every:
            name = one.statement.object.name  # type: ignore[union-attr]
            for forward, ask in ((False, line.before), (True, line.after)):
                firsts = set()
                for chosen in starts:
                    own, rest = chosen[name], {other: start for other, start in chosen.items() if other != name}
                    side = {other: start for other, start in rest.items() if (start > own if forward else start < own)}
                    best = (min if forward else max)(side.values(), default=None)
                    firsts.add(frozenset(other for other, start in side.items() if start == best))
                possible = {other for several in firsts for other in several}
                assert {item.statement.object.name for item in ask(one)} == possible, (line._items, name, forward)  # type: ignore[union-attr]
                sure = [item.statement.object.name for item in ask(one, certain=True)]  # type: ignore[union-attr]
                assert len(sure) <= 1
                if sure:
                    unique += 1
                    assert firsts == {frozenset(sure)}
        if all(len(spans(one.bounds)) <= 40 for one in every):
            pairs = {(a, b): {c[a][0] < c[b][1] and c[b][0] < c[a][1] for c in choices} for a, b in ("ab", "ac", "bc")}
            for certain in (False, True):
                wanted = {pair for pair, held in pairs.items() if (held == {True} if certain else True in held)}
                got = {tuple(sorted(one.statement.object.name for one in pair)) for pair in line.overlaps(certain=certain)}  # type: ignore[union-attr]
                assert got == wanted
            free = {
                moment: {not any(c[name][0] <= moment < c[name][1] for name in "abc") for c in choices} for moment in range(10, 18)
            }
            for certain in (False, True):
                got = {moment for gap in line.gaps(certain=certain) for moment in range(gap.start, gap.end)}
                assert all((held == {True}) if certain else (True in held) for moment, held in free.items() if moment in got)
    assert unique > 10


@pytest.fixture(scope="module")
def graph() -> condgraph.Graph:
    """Heads of government with years and days, one of unknown end, a gap, and a statement without a time."""
    start, end, point = "start time", "end time", "point in time"
    heads: list[tuple[str, tuple[tuple[str, Any], ...]]] = [
        ("Erhard", ((start, DAY(1963, 10, 16)), (end, DAY(1966, 11, 30)))),
        ("Brandt", ((start, Time.year(1969)), (end, Time.year(1974)))),
        ("Schmidt", ((start, Time.year(1974)), (end, DAY(1982, 10, 1)))),
        ("Kohl", ((start, DAY(1982, 10, 1)), (end, DAY(1998, 10, 27)))),
        ("Schröder", ((start, DAY(1998, 10, 27)), (end, DAY(2005, 11, 22)))),
        ("Merkel", ((start, DAY(2005, 11, 22)), (end, UNKNOWN))),
        ("Somebody", ()),
    ]
    result = condgraph.Graph()
    result.add(
        [
            Entity("DE", "Germany"),
            *(Entity(name, name) for name, _ in heads),
            *(Statement("DE", "head", Ref(name), times) for name, times in heads),
            Statement("DE", "population", "78", ((point, Time.year(1984)),)),
        ]
    )
    return result


def names(several: Any) -> list[str]:
    return [one.object.name for one in several]


def test_timeline(graph: condgraph.Graph) -> None:
    line = graph.timeline("Germany", "head")
    assert names(line) == ["Erhard", "Brandt", "Schmidt", "Kohl", "Schröder", "Merkel"]
    assert [one.object.name for one in line.untimed] == ["Somebody"]  # type: ignore[union-attr]
    assert names(line.before("Kohl")) == names(line.before("Kohl", certain=True)) == ["Schmidt"]
    assert names(line.after(line[3], certain=True)) == ["Schröder"]
    assert line.before("Erhard") == line.after("Merkel") == []
    assert names(line.before("1970", certain=True)) == ["Brandt"]
    assert names(line.before("1969-06-01")) == ["Erhard", "Brandt"]
    assert names(line.before("1969-06-01", certain=True)) == []
    assert [str(gap) for gap in line.gaps(certain=True)] == ["1966-12/1968"]
    # Brandt may have gone before Schmidt came, and may have come late in 1969.
    assert len(line.gaps()) == 2
    assert [names(pair) for pair in line.overlaps(certain=True)] == [
        ["Schmidt", "Kohl"],
        ["Kohl", "Schröder"],
        ["Schröder", "Merkel"],
    ]
    assert ["Brandt", "Schmidt"] in [names(pair) for pair in line.overlaps()]
    kohl, brandt, schmidt = line[3], line[1], line[2]
    assert (kohl.least, kohl.most, brandt.least, brandt.most, line[5].most) == (5_871, 5_871, 1_461, 2_191, None)
    assert (kohl.allen(schmidt), kohl.allen("1990"), brandt.allen(schmidt)) == ("overlapped by", "contains", None)
    assert brandt.possible(schmidt) == ("before", "meets", "overlaps")
    assert brandt.together(schmidt) is None
    assert names(graph.timeline(object="Kohl")) == names(graph.timeline("DE", object="Kohl")) == ["Kohl"]
    assert len(graph.timeline(predicate="head")) == 6
    assert names(graph.at("1984").timeline("Germany", "head")) == ["Kohl"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda g: g.timeline(), OptionError, "needs a subject"),
        (lambda g: g.timeline("Germny"), UnknownNameError, "Germany"),
        (lambda g: g.timeline("Germany", "haed"), UnknownNameError, "head"),
        (
            lambda g: g.timeline("Germany", "head").before("Kohll"),
            OptionError,
            "nor a time; nearest: 'Kohl'",
        ),
        (lambda g: g.timeline("Germany", "head").after("soon"), OptionError, "neither in the timeline nor a time"),
        (lambda g: g.timeline("Germany", "head")[0].allen("soon"), OptionError, "is not a time"),
        (lambda g: g.query("MATCH (a)-[r:head]->() RETURN allen(a, r)").values, PlanError, "a node has no time"),
    ],
)
def test_what_is_no_time(graph: condgraph.Graph, call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(graph)


PAIRS = (
    "MATCH (g)-[a:head]->(x), (g)-[b:head]->(y) WHERE x <> y "
    "RETURN x.name, y.name, allen(a, b), allen.possible(a, b), allen.together(a, b), days.least(a), days.most(a)"
)
QUERIES = [
    PAIRS,
    "MATCH (g)-[a:head]->(x) WHERE allen(a, 1990) = 'contains' RETURN x.name",
    "MATCH (g)-[a:head]->(x) WHERE 'meets' IN allen.possible(a, 1975) RETURN x.name",
    "MATCH (g)-[a:head]->(x), (g)-[b:head]->(y) WHERE allen.together(a, b) AND x.name < y.name RETURN x.name, y.name",
    "MATCH (g)-[a:head]->(x) WHERE days.least(a) > 2000 RETURN x.name, days.least(a)",
    "MATCH (g)-[a:head]->(x {name: 'Kohl'}), (g)-[b:head]->(y) WHERE allen(a, b) IN ['met by', 'overlapped by'] RETURN y.name",
]


def test_functions_of_cypher(graph: condgraph.Graph) -> None:
    line = graph.timeline("Germany", "head")
    by_name = {one.object.name: one for one in line}  # type: ignore[union-attr]
    rows = graph.query(PAIRS).values
    timed = [row for row in rows if row[0] in by_name and row[1] in by_name]
    assert len(timed) == 30
    for a, b, certain, possible, together, least, most in timed:
        one, other = by_name[a], by_name[b]
        assert (certain, tuple(possible), together) == (one.allen(other), one.possible(other), one.together(other))
        assert (least, most) == (one.least, one.most)
    assert all(row[2:5] == (None, None, None) for row in rows if "Somebody" in row[:2])
    for query in QUERIES:
        assert graph.query(query).check().ok
    assert graph.query("RETURN allen(date('1984-05-01'), 1984) AS x").texts == ["during"]


@pytest.fixture(scope="module", params=["duckdb", *marked("neo4j", "oxigraph", nightly=("virtuoso",))])
def stored(request: pytest.FixtureRequest, graph: condgraph.Graph) -> Iterator[Any]:
    with empty_graph(request, "timelines") as found:
        found.push(graph)
        yield found


def test_stores(graph: condgraph.Graph, stored: Any) -> None:
    for query in QUERIES:
        here, there = graph.query(query), stored.query(query)
        assert sorted(map(repr, there.values)) == sorted(map(repr, here.values)), query
        assert there.values
        assert sorted(map(str, there.evidence)) == sorted(map(str, here.evidence)), query
    for asked in (("Germany", "head"), (None, "head"), ("DE",), (None, None, "Kohl"), ("Germany", "population")):
        one, other = graph.timeline(*asked), stored.timeline(*asked)
        assert list(map(str, one)) == list(map(str, other))
        assert list(map(str, one.untimed)) == list(map(str, other.untimed))
        assert [one.bounds for one in one] == [one.bounds for one in other]


def test_what_ends_before_it_starts_holds_at_no_time() -> None:
    graph = condgraph.Graph()
    terms = (("A", 1990, 1980), ("B", 1970, 2000))
    graph.add([Statement("x", "head", Ref(n), (("start time", Time.year(a)), ("end time", Time.year(b)))) for n, a, b in terms])
    line = graph.timeline("x", "head")
    assert [names(line), [one.object.id for one in line.untimed]] == [["B"], ["A"]]  # type: ignore[union-attr]
    assert line.warnings == ("1 statement ends before it starts, and holds at no time: listed as untimed",)
    assert graph.query("Find(x) Relate(head, forward) QueryName()", at="1985").texts == ["B"]
    assert graph.query("MATCH ()-[r:head]->(b) WHERE allen(r, 1985) IS NULL RETURN b.name").texts == ["A"]
    assert not list(graph.conflicts("head"))


def test_bounds_of_what_qualifiers_say() -> None:
    start, end, point = "start time", "end time", "point in time"
    year, day = Time.year(1984), DAY(1984, 5, 1)
    assert Bounds.stated(()) is None
    assert Bounds.stated(((start, "soon"),)) is None
    known = Bounds.stated(((start, day), (end, day)))
    assert known == Bounds((day.start, day.start), (day.end, day.end))
    assert Bounds.stated(((point, year),)) == Bounds((year.start, year.start), (year.end, year.end))
    assert Bounds.stated(((start, year),)) == Bounds((year.start, year.end - 1), (year.start + 1, NEVER_AFTER))
    assert Bounds.stated(((end, year),)) == Bounds((NEVER_BEFORE, year.end - 1), (year.start + 1, year.end))
    nothing = Bounds((NEVER_BEFORE, NEVER_AFTER - 1), (NEVER_BEFORE + 1, NEVER_AFTER))
    assert Bounds.stated(((point, UNKNOWN),)) == nothing
    assert Bounds.stated(((start, DAY(1990, 1, 1)), (end, day))) is None
    several = Bounds.stated(((start, DAY(1980, 1, 1)), (start, DAY(1970, 1, 1)), (end, day), (end, DAY(1990, 1, 1))))
    assert several == Bounds((DAY(1970, 1, 1).start,) * 2, (DAY(1990, 1, 1).end,) * 2)


def test_the_command_shows_a_timeline(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    with condgraph.open(store) as graph:
        graph.add(
            [
                Entity("g", "Germany"), Entity("a", "Ann"), Entity("b", "Bo"), Entity("c", "Cy"),
                Statement("g", "head", Ref("b"), (("start time", DAY(2001, 1, 1)), ("end time", DAY(2004, 12, 31)))),
                Statement("g", "head", Ref("a"), (("start time", DAY(1999, 1, 1)), ("end time", DAY(2000, 6, 30)))),
                Statement("g", "friend", Ref("c")),
            ]
        )  # fmt: skip

    def lines(*arguments: str) -> list[str]:
        run = CliRunner().invoke(app, ["timeline", "-d", store, *arguments])
        assert run.exit_code == 0, run.output
        return [line.split(" (")[0].split("  [")[0] for line in run.output.splitlines()]

    heads = ["Germany | head | Ann", "Germany | head | Bo"]
    assert lines("Germany") == [*heads, "without a time: Germany | friend | Cy"]
    assert lines("--predicate", "head") == lines("g", "--predicate", "head") == heads
    assert lines("--object", "Bo") == heads[1:]
    assert lines("Germany", "--before", "Bo", "--certain") == heads[:1]
    assert lines("Germany", "--after", "2000-07-01", "--before", "2000") == []
    run = CliRunner().invoke(app, ["timeline", "-d", store, "Germany", "--format", "json"])
    document = json.loads(run.output)
    assert [one["object"] for one in document["statements"]] == ["Ann", "Bo"]
    assert (document["statements"][0]["least"], document["statements"][0]["most"]) == (547, 547)
    assert document["gaps"] == ["2000-07/2000"]
    assert [one["object"] for one in document["untimed"]] == ["Cy"]
    for wrong in ([], ["Germany", "--before", "soon"], ["Germny"], ["Germany", "--certain"]):
        assert CliRunner().invoke(app, ["timeline", "-d", store, *wrong]).exit_code in (1, 2)
