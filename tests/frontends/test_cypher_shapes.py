"""Cypher texts that differ in their constants alone share a plan, which runs over lists where rows are few: they answer as the
operators over arrays do, and a plan does not outlive the content that it was made for.
"""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

import condgraph
from condgraph import Graph, Member, Quantity, Ref, Statement
from condgraph.engine.errors import CondgraphError
from condgraph.languages.registry import request
from condgraph.snapshot_store import QuickRows
from tests.support.lanes import by_lane

NAMES = [
    "Ann",
    "Bo Li",
    'Çelik "X"',
    "O\u2019Hara",
    "$x",
    "`b`",
    "Ann ",
    "ann",
    "日本",
    "a // b",
    "/* c */",
    "Reds",
    "Blues",
    "x" * 60,
]
RELATIONS = ["knows", "plays for", "member"]


def world() -> Graph:
    """Entities of ugly names, two of one name, with parallel statements, loops, and values of several types."""
    draw = random.Random(7)
    graph = condgraph.open()
    ids = [f"id{at}" for at in range(40)]
    items: list[Any] = [condgraph.Entity(one, NAMES[at % len(NAMES)] if at < 16 else f"N{at}") for at, one in enumerate(ids)]
    for label in ("person", "team"):
        items.append(condgraph.Entity(label, label, condgraph.EntityKind.CONCEPT))
    for at, one in enumerate(ids):
        items.append(Member(one, "team" if at % 5 == 0 else "person"))
        if at % 3:
            items.append(Statement(one, "height", Quantity(draw.randrange(4))))
        if at % 4:
            items.append(Statement(one, "motto", draw.choice(["go", "Go", "", "état"])))
        if at % 7 == 0:
            items.append(Statement(one, "motto", "second"))
        if at % 2:
            items.append(Statement(one, "weight", Quantity(draw.choice([0.5, 2, 1.25]))))
    for _ in range(120):
        items.append(Statement(draw.choice(ids), draw.choice(RELATIONS), Ref(draw.choice(ids))))
    for _ in range(12):
        one, other = draw.sample(ids, 2)
        for year in (1990, 1991):
            items.append(Statement(one, "knows", Ref(other), (("since", Quantity(year)),)))
    graph.add(items)
    return graph


class Maker:
    """Random queries, each with places for names."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def path(self, first: str, names: list[str]) -> str:
        text, before = first, first
        for _ in range(self.draw.choice([1, 1, 2, 3])):
            types = self.draw.choice([":knows", ":`plays for`", ":member", ":knows|member", ""])
            name = f"r{len(names)}" if self.chance(0.3) else ""
            edge = f"[{name}{types}]"
            arrow = self.draw.choice(["-{}->", "<-{}-", "<-{}-", "-{}->", "-{}-" if self.chance(0.1) else "-{}->"])
            known = before if self.chance(0.08) else None
            node = known or f"v{len(names)}"
            label = self.draw.choice(["", "", "", ":person", ":team"]) if known is None else ""
            text += (
                arrow.format(edge) + f"({node}{label})"
                if text.endswith(")")
                else f"({text})" + arrow.format(edge) + f"({node}{label})"
            )
            if known is None:
                names.append(node)
        return text

    def query(self) -> str:
        draw = self.draw
        names = ["a"]
        start = draw.choice(['(a {name: "%s"})', "(a:person {name: '%s'})", "(a)", "(a:team)"])
        text = f"MATCH {self.path(start, names)}"
        tests = []
        if start in ("(a)", "(a:team)") and self.chance(0.8):
            tests.append("a.name = '%s'")
        for _ in range(draw.choice([0, 0, 1, 2])):
            one = draw.choice(names)
            tests.append(
                draw.choice([f"{one}.height > 1", f"{one}.motto = '%s'", f"{one}.name <> '%s'", f"{one}.motto IS NULL",
                             f"{one}.name STARTS WITH '%s'", f"{one} <> a", f"{one}.weight < 2.0 OR {one}.height = 0"])
            )  # fmt: skip
        text += f" WHERE {' AND '.join(tests)}" if tests else ""
        if self.chance(0.25):
            more = draw.choice(["MATCH", "OPTIONAL MATCH"])
            text += f" {more} {self.path(f'({draw.choice(names)})', names)}"
        if self.chance(0.1):
            text += " UNWIND ['%s', 'b', null] AS u"
        return text + self.ending(names)

    def ending(self, names: list[str]) -> str:
        draw = self.draw
        values = [draw.choice([n, f"{n}.name", f"{n}.motto", f"{n}.height", f"{n}.weight", f"{n}.name + '!'"]) for n in names[:3]]
        draw.shuffle(values)
        values = values[: draw.choice([1, 1, 2, 3])]
        items = [f"{value} AS c{at}" for at, value in enumerate(values)]
        if self.chance(0.35):
            one = draw.choice(names)
            aggregates = ["count(*)", f"count(DISTINCT {one})", f"collect({one}.name)", f"collect(DISTINCT {one}.motto)"]
            aggregates += [f"sum({one}.height)", f"avg({one}.weight)", f"max({one}.name)", f"min({one}.height)"]
            items.append(f"{draw.choice(aggregates)} AS c{len(items)}")
        text = f" RETURN {'DISTINCT ' * self.chance(0.3)}{', '.join(items)}"
        if self.chance(0.35):
            places = draw.sample(range(len(items)), draw.randint(1, len(items)))
            text += f" ORDER BY {', '.join(f'c{at}' + draw.choice(['', ' DESC']) for at in places)}"
        if self.chance(0.25):
            text += f" SKIP {draw.randrange(3)}"
        if self.chance(0.3):
            text += f" LIMIT {draw.randrange(6)}"
        return text


def outcome(answer: Any) -> tuple[Any, ...]:
    return answer.columns, list(map(repr, answer.values)), answer.texts, answer.cells, list(map(repr, answer.entities)), len(answer)


def filled(text: str, draw: random.Random) -> str:
    while "%s" in text:
        name = draw.choice(NAMES)
        text = text.replace("%s", name if not {"'", '"'} & set(name) else "Ann", 1)
    return text


def test_random_queries() -> None:
    graph = world()
    store: Any = graph._store_of(None)
    quick = rows = 0
    for seed in range(by_lane(60, 3_000, 30_000)):
        draw, text = random.Random(seed), Maker(seed).query()
        for turn in range(4):
            query = filled(text, draw)
            try:
                wanted = store._plainly(request(query, "cypher", None, {}))
            except CondgraphError as error:
                with pytest.raises(type(error), match=re.escape(str(error))):
                    graph.cypher(query)
                continue
            answer = graph.cypher(query)
            assert outcome(answer) == outcome(wanted), query
            if turn == 3:
                assert (sorted(map(str, answer.evidence)), answer.warnings) == (sorted(map(str, wanted.evidence)), wanted.warnings)
            quick += type(answer) is QuickRows
            rows += type(answer) is QuickRows and len(answer) > 0
    assert quick > by_lane(60, 3_000, 30_000)
    assert rows > quick // 4


def quick(graph: Graph, text: str, parameters: dict[str, Any] | None = None) -> Any:
    """The third answer to a query: the second text of a shape makes its plan."""
    for _ in range(2):
        graph.cypher(text, parameters)
    return graph.cypher(text, parameters)


def small() -> Graph:
    graph = condgraph.open()
    graph.add(
        [Statement("Ann", "knows", Ref("Bo")), Statement("Bo", "knows", Ref("Cy")), Statement("Bo", "motto", "Bo's")], source="a"
    )
    return graph


def test_texts_and_parameters_share_a_plan() -> None:
    graph = small()
    text = "MATCH (a {name: '%s'})-[:knows]->(b) RETURN b.name AS name"
    assert quick(graph, text % "Ann").values == [("Bo",)]
    answer = graph.cypher(text % "Bo")
    assert type(answer) is QuickRows
    assert (answer.values, answer.columns, answer.program) == ([("Cy",)], ("name",), text % "Bo")
    assert graph.cypher(text.replace("'", '"') % "Nobody").values == []
    assert answer.check().ok
    given = "MATCH (a {name: $who})-[:knows]->(b) WHERE $number = 1 RETURN b.name AS name"
    assert type(quick(graph, given, {"who": "Ann", "number": 1})) is QuickRows
    assert graph.cypher(given, {"who": "Bo", "number": 1}).values == [("Cy",)]
    assert graph.cypher(given, {"who": "Bo", "number": 2}).values == []
    assert graph.cypher(given, {"who": "Bo", "number": True}).values == []
    prepared = graph.prepare(given, language="cypher")
    assert [prepared(who=who, number=1).values for who in ("Ann", "Bo", "Bo")] == [[("Bo",)], [("Cy",)], [("Cy",)]]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # The text is the name of a column.
        ("RETURN 'x'", "RETURN 'y'"),
        # It is a key.
        ("MATCH (a {name: 'Bo'}) RETURN a['motto'] AS x", "MATCH (a {name: 'Bo'}) RETURN a['name'] AS x"),
        # It is in backticks, behind a comment, or has an escape.
        ("MATCH (a {name: 'Bo'}) RETURN a.motto AS `'p'`", "MATCH (a {name: 'Bo'}) RETURN a.motto AS `'q'`"),
        ("MATCH (a {name: 'Bo'}) RETURN a.motto AS x // 'p'", "MATCH (a {name: 'Bo'}) RETURN a.motto AS x // 'q'"),
        ("MATCH (a {motto: 'Bo\\'s'}) RETURN a.name AS x", "MATCH (a {motto: 'Bo\\\\'}) RETURN a.name AS x"),
        ("MATCH (a {name: 'Bo'}) RETURN a.name = 'Bo'", "MATCH (a {name: 'Bo'}) RETURN a.name = 'Cy'"),
        ("MATCH (a {name: 'Bo'})-->(b) WHERE a.name = 'Bo' RETURN b.name",
         "MATCH (a {name: 'Bo'})-->(b) WHERE a.name = 'x' RETURN b.name"),
        ("MATCH (a {name: 'Bo'}) OPTIONAL MATCH (a)-->(b {name: 'Cy'}) WITH a, b WHERE b.name = 'Cy' RETURN b.name",
         "MATCH (a {name: 'Bo'}) OPTIONAL MATCH (a)-->(b {name: 'x'}) WITH a, b WHERE b.name = 'x' RETURN b.name"),
    ],
)  # fmt: skip
def test_a_text_that_decides_the_plan_has_a_plan_of_its_own(one: str, other: str) -> None:
    graph = small()
    store: Any = graph._store_of(None)
    for query in (one, one, one, other, other, one):
        assert outcome(graph.cypher(query)) == outcome(store._plainly(request(query, "cypher", None, {}))), query


def test_one_name_twice_is_no_name_for_good() -> None:
    """The name of a variable does not hold of another one of that name."""
    graph = small()
    text = "MATCH (a {name: $p})-->(b) WITH 1 AS one, b MATCH (b)-->(a) WITH a, one WHERE a.name = $p RETURN a.name"
    assert [quick(graph, text, {"p": name}).values for name in ("Ann", "Bo")] == [[], []]


def test_a_plan_goes_with_the_content() -> None:
    graph = small()
    text = "MATCH (a {name: 'Ann'})-[:knows]->(b) RETURN b.name AS name"
    both = "MATCH (a {name: 'Ann'})-[:knows]->(b) RETURN b.name AS name, b.motto AS motto"
    assert quick(graph, text).values == [("Bo",)]
    assert quick(graph, both).values == [("Bo", "Bo's")]
    graph.add([Statement("Ann", "knows", Ref("Abe")), Statement("Abe", "motto", "new")], source="b")
    assert quick(graph, text).values == [("Abe",), ("Bo",)]
    assert quick(graph, both).values == [("Abe", "new"), ("Bo", "Bo's")]
    graph.unload("a")
    assert quick(graph, text).values == [("Abe",)]
    with pytest.raises(CondgraphError, match="liked"):
        graph.cypher(text.replace("knows", "liked"))
    graph.add([Statement("Ann", "liked", Ref("Abe"))], source="c")
    assert graph.cypher(text.replace("knows", "liked")).values == [("Abe",)]
    graph.unload("b")
    graph.unload("c")
    graph.add([Statement("Ann", "liked", Ref("Bo"))], source="d")
    with pytest.raises(CondgraphError, match="knows"):
        graph.cypher(text)


def test_errors_and_many_rows_are_those_of_arrays() -> None:
    graph = condgraph.open()
    graph.add([Statement("hub", "has", Ref(f"x{at:04}")) for at in range(1_500)], source="a")
    text = "MATCH (a {name: 'hub'})-[:has]->(b) RETURN b.name AS name"
    found = quick(graph, text)
    assert type(found) is not QuickRows
    assert found.values == [(f"x{at:04}",) for at in range(1_500)]
    assert graph.cypher("MATCH (a {name: 'hub'})-[:has]->(b) RETURN count(*) AS n").values == [(1_500,)]
    failing = "MATCH (a {name: '%s'})-[:has]->(b) RETURN b.name / 2 AS x"
    for name in ("hub", "hub", "x0001", "hub"):
        if name == "hub":
            with pytest.raises(CondgraphError, match="/"):
                graph.cypher(failing % name)
        else:
            assert graph.cypher(failing % name).values == []
