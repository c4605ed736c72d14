"""Cypher in process: rows checked by hand, evidence that proves them, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import (
    CondgraphError,
    LiteralError,
    OptionError,
    ParseError,
    PlanError,
    UnknownNameError,
    UnsupportedError,
)
from condgraph.engine.facts import Entity, EntityKind, Item, Member, Ref, Statement, Subclass
from condgraph.engine.stored_schema import StoredSchema, describe_schema
from condgraph.engine.values import Quantity, Time
from condgraph.languages.cypher.lower import lower
from condgraph.languages.registry import detect


def films() -> list[Item]:
    """People, films, and a cyclic line of cities; heights have a unit, ratings are not all whole."""
    items: list[Item] = [Entity(name, name, EntityKind.CONCEPT) for name in ("person", "actor", "film", "city")]
    items += [Subclass("actor", "person")]
    people = {"keanu": ("Keanu", "actor", 1964), "carrie": ("Carrie-Anne", "actor", 1967), "lana": ("Lana", "person", 1965)}
    for ident, (name, concept, born) in people.items():
        items += [Entity(ident, name), Member(ident, concept), Statement(ident, "born", Time.year(born))]
    for ident, title, rating, released in (("m1", "The Matrix", 8.7, 1999), ("m2", "Speed", 7, 1994), ("m3", "Bound", 7.3, 1996)):
        items += [Entity(ident, title), Member(ident, "film"), Statement(ident, "title", title)]
        items += [Statement(ident, "rating", Quantity(rating)), Statement(ident, "released", Quantity(released))]
    items += [
        Statement("keanu", "acted in", Ref("m1"), (("role", "Neo"), ("year", Quantity(1999)))),
        Statement("keanu", "acted in", Ref("m2"), (("role", "Jack"), ("year", Quantity(1994)))),
        Statement("carrie", "acted in", Ref("m1"), (("role", "Trinity"),)),
        Statement("lana", "directed", Ref("m1")),
        Statement("lana", "directed", Ref("m3")),
        Statement("keanu", "height", Quantity(186, "cm")),
        Statement("carrie", "height", Quantity(174, "cm")),
        Statement("m1", "colour", "true"),
        Statement("m3", "colour", "false"),
    ]
    for start, end in (("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")):
        items.append(Statement(start, "road", Ref(end)))
    return items + [Member(name, "city") for name in "abcd"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    made = condgraph.open()
    made.add(films())
    return made


def plain(value: Any) -> Any:
    """A cell without the types of entities and quantities."""
    if isinstance(value, Entity):
        return value.id
    if isinstance(value, Quantity):
        return value.number if value.unit == "1" else str(value)
    if isinstance(value, Time):
        return str(value)
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


#: Queries with their rows; in the order of ORDER BY, or in the fixed order of rows.
ROWS: list[tuple[str, list[list[Any]]]] = [
    (
        "MATCH (p:person)-[:`acted in`]->(f) RETURN p.name, f.title",
        [["Carrie-Anne", "The Matrix"], ["Keanu", "Speed"], ["Keanu", "The Matrix"]],
    ),
    ("MATCH (p:actor) RETURN count(*) AS n", [[2]]),
    ("MATCH (p) WHERE p:person RETURN p.name AS n ORDER BY n DESC", [["Lana"], ["Keanu"], ["Carrie-Anne"]]),
    ("MATCH (p {name: 'Keanu'})-[r:`acted in` {role: 'Neo'}]->(f) RETURN f.title, r.year", [["The Matrix", 1999]]),
    ("MATCH (p:person) WHERE p.born > 1964 RETURN p.name ORDER BY p.name", [["Carrie-Anne"], ["Lana"]]),
    ("MATCH (p:person) WHERE p.born < date('1965-06-01') RETURN p.name", [["Keanu"]]),
    ("WITH date('1984-10-31') AS d RETURN d >= 1984 AS a, d <= 1984 AS b, d >= 1985 AS c", [[True, True, False]]),
    ("MATCH (p:person) WHERE p.height > 180 RETURN p.name", [["Keanu"]]),
    ("MATCH (p:person) WHERE p.height > quantity('180 cm') RETURN p.height", [["186 cm"]]),
    ("MATCH (p:person) WHERE p.height IS NULL RETURN p.name", [["Lana"]]),
    ("MATCH (p:person) WHERE NOT p.height > 180 RETURN p.name", [["Carrie-Anne"]]),
    ("MATCH (f:film) RETURN f.rating / 2 AS half ORDER BY half", [[3.5], [3.65], [4.35]]),
    ("MATCH (f:film) RETURN f.released / 1000 AS n LIMIT 1", [[1]]),
    ("MATCH (f:film {colour: true}) RETURN f.title", [["The Matrix"]]),
    ("MATCH (f:film) RETURN avg(f.rating) AS a, min(f.released) AS b, sum(f.released) AS c", [[23 / 3, 1994, 5989]]),
    (
        "MATCH (p:person) OPTIONAL MATCH (p)-[:directed]->(f) RETURN p.name AS n, collect(f.title) AS t ORDER BY n",
        [["Carrie-Anne", []], ["Keanu", []], ["Lana", ["Bound", "The Matrix"]]],
    ),
    ("MATCH (p:person) WHERE EXISTS { (p)-[:directed]->() } RETURN p.name", [["Lana"]]),
    ("MATCH (p:person) WHERE NOT (p)-[:directed]->() RETURN p.name ORDER BY p.name", [["Carrie-Anne"], ["Keanu"]]),
    (
        "MATCH (p:person) RETURN p.name AS n, COUNT { (p)-[:`acted in`]->() } AS c ORDER BY n",
        [["Carrie-Anne", 1], ["Keanu", 2], ["Lana", 0]],
    ),
    (
        "MATCH (p:actor) RETURN p.name AS n, [(p)-[r:`acted in`]->(f) WHERE f.released > 1995 | r.role] AS roles ORDER BY n",
        [["Carrie-Anne", ["Trinity"]], ["Keanu", ["Neo"]]],
    ),
    (
        "MATCH (p:actor) CALL (p) { MATCH (p)-->(f:film) RETURN f.title AS t ORDER BY t LIMIT 1 } RETURN p.name, t",
        [["Carrie-Anne", "The Matrix"], ["Keanu", "Speed"]],
    ),
    (
        "MATCH (p:person) CALL { WITH p MATCH (p)-[:directed]->(f) RETURN count(f) AS c } RETURN p.name AS n, c ORDER BY n",
        [["Carrie-Anne", 0], ["Keanu", 0], ["Lana", 2]],
    ),
    (
        "MATCH (p:actor) RETURN COLLECT { MATCH (p)-->(f:film) RETURN f.released ORDER BY f.released DESC } AS l ORDER BY p.name",
        [[[1999]], [[1999, 1994]]],
    ),
    ("MATCH (a:city)-[:road*2]->(b) RETURN a, b", [["a", "c"], ["b", "a"], ["b", "d"], ["c", "b"]]),
    (
        "MATCH p = (x:city)-[:road*1..4]->(b:city) WHERE x.name = 'a' RETURN b, length(p) AS n ORDER BY n, b.name",
        [["b", 1], ["c", 2], ["a", 3], ["d", 3]],
    ),
    ("MATCH p = (x:city)-[:road]->{2,3}(b) WHERE x.name = 'b' RETURN b, length(p) AS n", [["a", 2], ["b", 3], ["d", 2]]),
    (
        "MATCH p = shortestPath((x:city {name: 'a'})-[:road*]->(y:city {name: 'd'})) RETURN [n IN nodes(p) | n.name] AS l",
        [[["a", "b", "c", "d"]]],
    ),
    ("MATCH (a)-[r:road]->(b)-[s:road]->(c)-[t:road]->(a) RETURN count(*) AS n", [[3]]),
    ("MATCH (a:city)--(b) WHERE a.name = 'c' RETURN b ORDER BY b.name", [["a"], ["b"], ["d"]]),
    ("UNWIND [3, 1, null, 2] AS x RETURN x ORDER BY x DESC", [[None], [3], [2], [1]]),
    ("UNWIND [1, 2, 3] AS x WITH x WHERE x > 1 RETURN sum(x) AS s, collect(x * 2) AS l", [[5, [4, 6]]]),
    ("UNWIND [1, 2] AS x RETURN x UNION UNWIND [2, 3] AS x RETURN x", [[1], [2], [3]]),
    ("UNWIND [1, 2] AS x RETURN x UNION ALL UNWIND [2, 3] AS x RETURN x", [[1], [2], [2], [3]]),
    (
        "RETURN null = null AS a, null <> 1 AS b, true OR null AS c, false AND null AS d, NOT null AS e",
        [[None, None, True, False, None]],
    ),
    ("RETURN round(-2.5) AS a, round(-1.25, 1) AS b, toInteger(' 1') AS c, toFloat(' 1 ') AS d", [[-2.0, -1.3, None, 1.0]]),
    ("RETURN toFloat('-Infinity') AS a, isNaN(toFloat(' NaN')) AS b, toFloat('nan') AS c", [[-math.inf, True, None]]),
    ("RETURN 7 / 2 AS a, 7.0 / 2 AS b, -7 % 3 AS c, 2 ^ 3 AS d", [[3, 3.5, -1, 8.0]]),
    (
        "RETURN CASE 3 WHEN 1, 2 THEN 'low' WHEN 3 THEN 'three' ELSE 'high' END AS a, reduce(s = 0, x IN [1, 2] | s + x) AS b",
        [["three", 3]],
    ),
    (
        "RETURN [x IN range(1, 5) WHERE x % 2 = 1 | x * x] AS a, [1, 2, 3][-1] AS b, [1, 2, 3][1..] AS c, {k: 1}.k AS d",
        [[[1, 9, 25], 3, [2, 3], 1]],
    ),
    (
        "RETURN date('2024-02-28') + duration('P2D') AS a, duration.between(date('2024-01-01'), date('2024-03-01')).months AS b",
        [["2024-03-01", 2]],
    ),
    (
        "RETURN any(x IN [1, null] WHERE x = 2) AS a, all(x IN [] WHERE x) AS b, single(x IN [1, 2] WHERE x = 1) AS c",
        [[None, True, True]],
    ),
    (
        "RETURN 'abc' STARTS WITH 'a' AS a, 'abc' =~ 'a.c' AS b, 1 IN [1, null] AS c, 2 IN [1, null] AS d",
        [[True, True, True, None]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "rows"), ROWS, ids=lambda case: case if isinstance(case, str) else "")
def test_rows_are_those_of_cypher_and_proved(graph: Graph, text: str, rows: list[list[Any]]) -> None:
    answer = graph.query(text)
    assert answer.language == "cypher"
    assert [plain(row if isinstance(row, tuple) else (row,)) for row in answer.values] == rows
    assert answer.check(), answer.check()


def test_paths_begin_at_the_end_that_a_condition_chooses() -> None:
    """Of a node with 6,000 neighbours there are 36 million paths of two steps, more than there may be rows."""
    hub: list[Item] = [Statement(f"n{i}", "near", Ref("hub")) for i in range(6_000)]
    graph = condgraph.open("memory:")
    graph.add([*hub, Statement("x", "near", Ref("y")), Statement("y", "near", Ref("z")), Entity("c", "c", EntityKind.CONCEPT)])
    graph.add([Statement("x", "near", Ref("c"))])
    for path in ("(a {name: 'x'})-[*1..2]-(b)", "(b)-[*1..2]-(a {name: 'x'})", "(a)-[*1..2]-(b) WHERE a.name = 'x'"):
        assert sorted(graph.cypher(f"MATCH {path} RETURN b.name").texts) == ["c", "y", "z"]
    assert graph.cypher("MATCH (a {name: 'Nobody'})-[*1..2]-(b) RETURN b").texts == []
    assert graph.cypher("MATCH (a {name: 'x'})-[*1..2]-(b {name: 'z'}) RETURN count(*)").texts == ["1"]
    # A concept may be at the other end of a path that may have no steps, too.
    for path in ("(a {name: 'x'})-[*0..1]-(b)", "(b)-[*0..1]-(a {name: 'x'})"):
        assert sorted(graph.cypher(f"MATCH {path} RETURN b.name").texts) == ["c", "x", "y"]


def test_rows_with_equal_names_are_in_the_order_of_ids() -> None:
    """The column of names comes first, and the nodes tie there."""
    graph = condgraph.open("memory:")
    graph.add([item for i in range(4) for item in (Entity(f"b{i}", "B"), Statement(f"a{i}", "r", Ref(f"b{3 - i}")))])
    rows = graph.cypher("MATCH ()-[:r]->(b) RETURN DISTINCT b.name AS n, b").values
    assert [(name, entity.id) for name, entity in rows] == [("B", "b0"), ("B", "b1"), ("B", "b2"), ("B", "b3")]


def test_many_rows_are_worked_out_as_single_ones_are() -> None:
    """Properties of many entities are read by columns, and rows joined by equal values: 3,000 rows with each other are 9
    million, of which a filter is to see those that may be equal alone.
    """
    items: list[Item] = []
    for i in range(3_000):
        items.append(Statement(f"n{i:04}", "n", Quantity(i % 7)))
        if i % 3:
            items.append(Statement(f"n{i:04}", "x", Quantity(i / 2)))
        items.extend(Statement(f"n{i:04}", "tag", tag) for tag in (("a", "b") if i % 10 == 0 else (f"t{i % 9}",)))
        items.append(Statement(f"n{i:04}", "born", Time.year(1900 + i % 100)))
        items.append(Statement(f"n{i:04}", "next", Ref(f"n{(i + 1) % 3_000:04}")))
    graph = condgraph.open("memory:")
    graph.add(items)

    def only(text: str, **parameters: Any) -> Any:
        values = graph.cypher(f"MATCH {text}", parameters).values
        return values if len(values) > 1 else values[0] if len(values[0]) > 1 else values[0][0]

    xs = [i / 2 for i in range(3_000) if i % 3]
    assert only("(a) RETURN sum(a.n), max(a.n), min(a.x), max(a.x), count(a.x)") == (
        sum(i % 7 for i in range(3_000)),
        6,
        0.5,
        xs[-1],
        2000,
    )
    assert only("(a) WHERE a.n * 2 > 7 AND a.x < 100.5 RETURN count(*)") == sum(
        i % 7 > 3 and i < 201 and i % 3 > 0 for i in range(3_000)
    )
    assert only("(a) WHERE size(a.tag) = 2 RETURN count(*)") == 300
    assert only("(a) WHERE a.tag = ['a', 'b'] AND a.x IS NULL RETURN count(*)") == 100
    assert only("(a) RETURN a.n AS n, a.name, labels(a) ORDER BY n DESC, a.name SKIP 2 LIMIT 2") == [
        (6, "n0020", ()),
        (6, "n0027", ()),
    ]
    assert only("(a)-[r]->(b) RETURN a.name, b.n SKIP 1 LIMIT 2") == [("n0001", 2), ("n0002", 3)]
    assert only("(a), (b) WHERE a.x = b.n RETURN count(*)") == sum(x == i % 7 for x in xs for i in range(3_000))
    assert only("(a), (b) WHERE a.tag = b.tag AND a.n = 1 AND b.x = a.x RETURN count(*)") == sum(
        i % 7 == 1 for i in range(3_000) if i % 3
    )
    assert only("(a) WHERE a.x IN $xs RETURN count(*)", xs=[None, "1", True, *range(100)]) == sum(
        x.is_integer() and x < 100 for x in xs
    )
    assert only("(a) WHERE a.born IN $years RETURN count(*)", years=[*range(1890, 1902), "1950"]) == 60
    found = graph.cypher("UNWIND range(1, 3000) AS i MATCH (a {x: i}) WHERE a.born = 1900 + i % 100 RETURN count(*)")
    assert found.values == [(sum(x.is_integer() and (2 * x) % 100 == x % 100 and x > 0 for x in xs),)]
    assert only("p = shortestPath((a {name: 'n0005'})-[*]-(b {name: 'n0002'})) RETURN length(p)") == 3
    assert only("p = shortestPath((a {name: 'n0005'})-[*]->(b {name: 'n0105'})) RETURN length(p)") == 100


def test_types_of_numbers_are_kept(graph: Graph) -> None:
    ((first, second, third),) = graph.cypher("RETURN 1 AS a, 1.0 AS b, [1, 1.0] AS c").values
    assert [type(item) for item in (first, second, *third)] == [int, float, int, float]
    assert [type(row[0]) for row in graph.cypher("UNWIND [4, 4.0] AS x RETURN x / 2 AS y").values] == [int, float]


def test_whole_floats_beyond_integers_of_64_bits_are_floats() -> None:
    made = condgraph.open()
    made.add([Entity("earth", "Earth"), Statement("earth", "mass", Quantity(5.972e24)), Statement("earth", "moons", Quantity(1))])
    made.add([Entity("pebble", "Pebble"), Statement("pebble", "mass", Quantity(3))])
    text = "MATCH (n) RETURN n.mass AS mass, toString(n.mass) AS text, [n.mass] AS list ORDER BY mass"
    for engine in ("snapshot", "sparql"):
        answer = made.query(text, language="cypher", engine=engine)
        assert [type(mass) for mass, *_ in answer.values] == [float, float]
        assert answer.texts == ["3 | 3.0 | [3]", "5.972e+24 | 5.972E24 | [5.972e+24]"]
    assert made.cypher("MATCH (n {name: 'Earth'}) RETURN sum(n.mass) AS mass, n.moons AS moons").texts == ["5.972e+24 | 1"]
    # Digits that no float has show that integers are meant.
    made.add(Statement("pebble", "mass", Quantity(2**70 + 1)))
    assert made.cypher("MATCH (n {name: 'Earth'}) RETURN n.mass").values == [(int(5.972e24),)]


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ("0.5, null, 2", [0.5, None, 2.0]),
        ("1, null, 2", [1, None, 2]),
        ("9007199254740993, 0.5", ["0.5", "9007199254740993"]),
        ("0.5, 0.0/0.0", ["0.5", "nan"]),
        ("0.5, 'a'", ["0.5", "a"]),
    ],
)
def test_floats_are_numbers_in_data_frames(graph: Graph, values: str, column: list[Any]) -> None:
    answer = graph.cypher(f"UNWIND [{values}] AS x RETURN x")
    for rows in (answer.to_arrow().to_pylist(), answer.data()):
        assert sorted(rows, key=repr) == sorted(({"x": value} for value in column), key=repr)


def test_parameters_are_values_and_never_text(graph: Graph) -> None:
    text = "MATCH (p:person) WHERE p.name = $name RETURN p.name AS n"
    assert graph.cypher(text, {"name": "Keanu"}).texts == ["Keanu"]
    assert graph.cypher(text, {"name": "' OR true //"}).texts == []
    assert graph.cypher("UNWIND $rows AS r RETURN r.a AS a", {"rows": [{"a": 1}, {"a": None}]}).values == [(1,), (None,)]
    prepared = graph.prepare(text)
    assert [prepared(name=name).texts for name in ("Lana", "Keanu")] == [["Lana"], ["Keanu"]]
    with pytest.raises(OptionError, match="the parameter \\$name is not given"):
        graph.cypher(text)


@pytest.mark.parametrize("engine", [None, "sparql"])
def test_statements_of_one_value_are_one_property(engine: str | None) -> None:
    """A population that two years state is no list; two populations are one."""
    graph = condgraph.open()
    years = [(("start time", Time.year(year)),) for year in (1999, 2000)]
    graph.add([Statement(town, "population", Quantity(5), year) for town in ("a", "b") for year in years])
    graph.add([Statement("b", "population", Quantity(7))])
    text = "MATCH (n) WHERE n.population = 5 OR size(n.population) = 2 RETURN n.id AS id, n.population AS p ORDER BY id"
    assert graph.query(text, language="cypher", engine=engine).values == [("a", 5), ("b", (5, 7))]


def test_limits_traces_and_tables_are_those_of_any_answer(graph: Graph) -> None:
    answer = graph.cypher("MATCH (f:film) RETURN f.title AS title, f.released AS year ORDER BY year", limit=2)
    assert answer.columns == ("title", "year")
    assert [row[0] for row in answer.values] == ["Speed", "Bound"]
    assert "1 more value is not shown (limit 2)" in answer.warnings
    assert [step.function for step in answer.trace] == ["MATCH", "RETURN"]
    assert answer.to_arrow().column_names == ["title", "year"]
    assert "f.title" not in graph.explain("MATCH (f:film) RETURN f")


@pytest.fixture(scope="module")
def parts() -> Graph:
    """Keanu has two roles and two nicknames, Carrie-Anne one each; a film's title is one everywhere."""
    made = condgraph.open()
    made.add([
        Statement("keanu", "plays in", Ref("m1"), (("roles", "Neo"), ("roles", "Thomas"), ("order", "first"))),
        Statement("carrie", "plays in", Ref("m1"), (("roles", "Trinity"), ("order", "second"))),
        *(Statement(who, "nick", nick) for who, nick in (("keanu", "K"), ("keanu", "Kea"), ("carrie", "Cam"))),
        Statement("m1", "title", "The Matrix"),
        Statement("m1", "roles", "a text of the film"),
    ])  # fmt: skip
    return made


#: Expressions about a part `r` of an actor `p` in a film `m`, with their values for Carrie-Anne and Keanu, and the keys and
#: functions that are warned of.
LISTED = [
    ("size(r.roles)", [1, 2], "'roles' has several values in places: size()"),
    ("size(p.nick)", [1, 2], "'nick' has several values in places: size()"),
    ("reverse(r.roles)", [["Trinity"], ["Thomas", "Neo"]], "'roles' has several values in places: reverse()"),
    ("isEmpty(r.roles)", [False, False], "'roles' has several values in places: isEmpty()"),
    ("'Trinity' IN r.roles", [True, False], ""),
    ("[x IN r.roles | toUpper(x)]", [["TRINITY"], ["NEO", "THOMAS"]], ""),
    ("any(x IN r.roles WHERE x = 'Neo')", [False, True], ""),
    ("reduce(s = '', x IN r.roles | s + left(x, 1))", ["T", "NT"], ""),
    ("r.roles[0]", ["Trinity", "Neo"], ""),
    ("r.roles[0..1]", [["Trinity"], ["Neo"]], ""),
    ("head(r.roles)", ["Trinity", "Neo"], ""),
    ("tail(r.roles)", [[], ["Thomas"]], ""),
    ("size(r.order)", [6, 5], ""),
    ("size(m.title)", [10, 10], ""),
    ("size(m.roles)", [18, 18], ""),
    ("size(toString(r.order))", [6, 5], ""),
    ("[x IN [r] | size(x.roles)][0]", [7, 2], "size() may be of 'roles'"),
]


@pytest.mark.parametrize(("expression", "values", "warning"), LISTED)
def test_a_list_of_one_value_is_a_list_where_others_have_several(
    parts: Graph, expression: str, values: list[Any], warning: str
) -> None:
    answer = parts.cypher(f"MATCH (p)-[r:`plays in`]->(m) RETURN p.id AS id, {expression} AS value ORDER BY id")
    assert [plain(row[1]) for row in answer.values] == values
    assert [text[: len(warning)] for text in answer.warnings] == ([warning] if warning else [])
    assert answer.check()
    stored = StoredSchema(describe_schema(parts.current))
    text = f"MATCH (p)-[r:`plays in`]->(m) WITH p, r, m WITH {expression} AS value RETURN value"
    assert str(lower(text, stored).plan) == str(lower(text, parts.current.schema).plan)


def test_lists_of_one_value_stay_lists_under_another_name(parts: Graph) -> None:
    answer = parts.cypher(
        "MATCH (p)-[r:`plays in`]->() WITH p.id AS id, r.roles AS played RETURN id, size(played) AS n ORDER BY id"
    )
    assert [plain(row[1]) for row in answer.values] == [1, 2]
    unwound = parts.cypher("MATCH ()-[r:`plays in`]->() UNWIND r.roles AS role RETURN role ORDER BY role")
    assert unwound.texts == ["Neo", "Thomas", "Trinity"]
    unclear = parts.cypher("MATCH ()-[r:`plays in`]->() WITH collect(r.roles) AS all UNWIND all AS one RETURN size(one)")
    assert unclear.warnings == ["size() may be of 'roles', where a list of one value is the value, a text for example"]


def test_a_schema_of_an_earlier_version_does_not_say_what_has_several_values(parts: Graph) -> None:
    described = describe_schema(parts.current)
    del described["several"]
    lowered = lower("MATCH (m) RETURN size(m.title)", StoredSchema(described))
    assert lowered.warnings == ["size() may be of 'title', where a list of one value is the value, a text for example"]


#: Queries without rows, and the clause or condition that the warning names.
EMPTY = [
    ("MATCH (p:person) WHERE p.born > 1990 RETURN p", "MATCH returned nothing, WHERE p.born > 1990; none of 3 rows satisfies it"),
    ("MATCH (p {name: 'Nemo'}) RETURN p", "MATCH returned nothing, the name 'Nemo'; nothing is called 'Nemo'"),
    ("MATCH (f:film) RETURN f.title SKIP 3 LIMIT 2", "RETURN returned nothing, SKIP 3 LIMIT 2; there are only 3 rows"),
    ("MATCH (f:film) WITH f LIMIT 0 RETURN f", "WITH returned nothing, LIMIT 0; no row is left"),
    (
        "UNWIND [x IN [1, 2] WHERE x > 2] AS n RETURN n",
        "UNWIND returned nothing, UNWIND [x IN [1, 2] WHERE x > 2] AS n; the list is empty or null",
    ),
    (
        "MATCH (p:city)-[r:`acted in`]->(f:film) RETURN f",
        "MATCH returned nothing, the pattern (p)-[r:`acted in`]->(f), (f:film), (p:city); "
        "no nodes and relationships match all of it at once",
    ),
    ("MATCH (a:city)-[:road*5..6]->(b) RETURN b", "MATCH returned nothing, the path (a)-[:road*5..6]->(b); no path matches it"),
    (
        "MATCH (p:person) WITH p WHERE NOT (p)--() AND p.height IS NOT NULL RETURN p",
        "WITH returned nothing, WHERE NOT { ... }; none of 3 rows satisfies it",
    ),
    (
        "MATCH (n:nope) RETURN n",
        "MATCH returned nothing, a label or relationship type that the graph does not have; no row is left",
    ),
]


@pytest.mark.parametrize(("text", "words"), EMPTY)
def test_an_empty_answer_names_the_clause_that_left_nothing(graph: Graph, text: str, words: str) -> None:
    assert graph.cypher(text, on_unknown="empty").warnings[-1] == f"the answer is empty: {words}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("MATCH (n:persn) RETURN n", "unknown label 'persn' (at character 10); nearest: 'person'"),
        ("MATCH ()-[:acted]->() RETURN 1", "unknown relationship type 'acted' (at character 12); nearest: 'acted in'"),
        ("MATCH (n:film) WHERE n.titel = 'x' RETURN n", "unknown property 'titel' (at character 24); nearest: 'title'"),
        ("MATCH ()-[r]->() RETURN r.rolle", "unknown property of relationships 'rolle' (at character 27); nearest: 'role'"),
        ("RETURN siz([1])", "unknown function 'siz' (at character 8); nearest: 'size'"),
    ],
)
def test_unknown_names_are_errors_or_null_with_a_warning(graph: Graph, text: str, words: str) -> None:
    with pytest.raises(UnknownNameError) as raised:
        graph.cypher(text)
    assert str(raised.value).startswith(words)
    if "function" not in words:
        assert any("the graph has no" in warning for warning in graph.cypher(text, on_unknown="empty").warnings)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE (n:film) RETURN n", "MATCH (n) SET n.x = 1 RETURN n", "MATCH (n) DETACH DELETE n",
        "MATCH (n) REMOVE n:film RETURN n",
        "MERGE (n:film) RETURN n", "LOAD CSV FROM 'file:///etc/passwd' AS l RETURN l", "FOREACH (x IN [1] | CREATE (n))",
        "MATCH (n) CALL { CREATE (m) RETURN m } RETURN n", "CALL dbms.components()", "CALL db.createLabel('a')",
        "MATCH (n) RETURN n; MATCH (m) DELETE m", "DROP INDEX x", "SHOW USERS", "USE other MATCH (n) RETURN n",
        "CALL { MATCH (n) RETURN n } IN TRANSACTIONS RETURN 1", "RETURN apoc.load.json('http://x') AS x",
    ],
)  # fmt: skip
def test_what_does_more_than_read_is_refused_by_name(graph: Graph, text: str) -> None:
    with pytest.raises(ParseError) as raised:
        graph.query(text, language="cypher")
    assert raised.value.span is not None


def test_procedures_about_names_are_rows(graph: Graph) -> None:
    def rows(text: str) -> list[Any]:
        return plain(tuple(graph.query(text, language="cypher").values))  # type: ignore[no-any-return]

    assert rows("CALL db.labels()") == [["actor"], ["city"], ["film"], ["person"]]
    assert rows("CALL db.relationshipTypes() YIELD relationshipType AS t WHERE t STARTS WITH 'a' RETURN *") == [["acted in"]]
    assert rows(
        "MATCH (f:film {title: 'Speed'}) CALL db.labels() YIELD label RETURN f.title AS t, label ORDER BY label DESC LIMIT 1"
    ) == [["Speed", "person"]]
    assert rows("CALL db.propertyKeys() YIELD propertyKey RETURN count(*)") == [[10]]
    assert rows("RETURN COUNT { CALL db.labels() YIELD label RETURN label } AS n") == [[4]]
    for text, message in [
        ("CALL db.labels(1)", "no arguments"),
        ("CALL db.labels() YIELD lable RETURN lable", "nearest: 'label'"),
        ("CALL db.lables()", "nearest: 'db.labels'"),
        ("UNWIND [1] AS label CALL db.labels() YIELD label RETURN 1", "already exists"),
        ("CALL db.labels() YIELD label", None),
        ("CALL db.labels() YIELD label MATCH (n)", "RETURN"),
        ("CALL db.", "name of a procedure"),
    ]:
        if message is None:
            assert len(rows(text)) == 4
            continue
        with pytest.raises((ParseError, PlanError)) as raised:
            rows(text)
        assert message in str(raised.value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("MATCH (n) RETURN m", PlanError), ("MATCH (n)-[n]->() RETURN n", PlanError), ("RETURN 1 AS a, 2 AS a", PlanError),
        ("MATCH (n) WITH n.title RETURN 1", PlanError), ("MATCH (n) WHERE count(n) > 1 RETURN n", PlanError),
        ("MATCH (n) RETURN n.title, n.rating + count(*)", PlanError), ("RETURN 1 LIMIT -1", PlanError),
        ("RETURN 1 AND 2", PlanError),
        ("RETURN 1 AS a UNION RETURN 2 AS b", PlanError), ("MATCH (n) RETURN size((n)-->())", PlanError),
        ("RETURN 1 +", ParseError),
        ("RETURN 'a", ParseError), ("MATCH (n RETURN n", ParseError), ("RETURN 9223372036854775808", ParseError),
        ("RETURN 1 / 0", PlanError), ("RETURN datetime.fromepoch('a', 0)", LiteralError),
        ("RETURN duration({days: 1 / 0.0})", LiteralError),
        ("RETURN datetime({epochSeconds: 'a'})", LiteralError), ("RETURN date.truncate('day', date(), 5)", LiteralError),
        ("RETURN reduce(s = 'abcdefgh', x IN range(0, 60) | s + s)", PlanError),
        ("RETURN reduce(s = [1], x IN range(0, 60) | s + s)", PlanError),
        ("RETURN toString(reduce(s = 10, x IN range(0, 60) | s * s))", PlanError),
        ("RETURN '" + "a" * 30 + "' =~ '(a+)+\\\\1b'", PlanError), ("RETURN range(1, 100000000000)", PlanError),
        ("UNWIND [[1]] AS l RETURN [x IN l WHERE (x)-->()]", UnsupportedError), ("RETURN date('2024-02-30')", CondgraphError),
    ],
)  # fmt: skip
def test_what_means_nothing_is_a_typed_error(graph: Graph, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        graph.cypher(text)


def test_texts_that_look_like_truth_values() -> None:
    graph = condgraph.open("memory:")
    graph.load([{"k": "a", "flag": "True", "fine": True}, {"k": "b", "flag": "False", "fine": False}], name="t", key="k")
    for condition in ("n.flag", "n.flag = true", "false <> n.flag AND n.k = 'a'", "CASE WHEN n.flag THEN true END"):
        answer = graph.cypher(f"MATCH (n:t) WHERE {condition} RETURN count(*)")
        assert "'flag' is a text such as 'False'" in answer.warnings[0], condition
    answer = graph.cypher("MATCH (n:t) WHERE n.fine AND toBoolean(n.flag) AND n.flag = 'True' RETURN count(*)")
    assert (answer.values, answer.warnings) == ([(1,)], [])


def test_numbers_that_no_float_holds() -> None:
    graph = condgraph.open("memory:")
    graph.load([{"k": "a", "v": 10**400, "w": 10**400}, {"k": "b", "v": 0.5, "w": 2}], name="t", key="k")
    # With a fraction among them the numbers of a key are floats.
    assert graph.cypher("MATCH (n:t) RETURN n.v AS v, n.w * 2 AS w, n.w / 2.0 AS x ORDER BY v").values == [
        (0.5, 4, 1.0), (math.inf, 2 * 10**400, math.inf)
    ]  # fmt: skip
    assert graph.cypher("MATCH (n:t) RETURN avg(n.w), sum(1e308), stDev(n.v)").values[0][:2] == (math.inf, math.inf)
    infinite = "UNWIND [1 / 0.0, 3, -1 / 0.0] AS x WITH x * quantity('5 km') AS q"
    assert graph.cypher(f"{infinite} RETURN q ORDER BY q").texts == ["-inf km", "15 km", "inf km"]
    assert graph.cypher(f"{infinite} RETURN min(q), max(q)").texts == ["-inf km | inf km"]


@pytest.mark.parametrize(
    "text",
    [
        "RETURN " + "(" * 100_000, "RETURN " + "[" * 100_000, "RETURN " + "NOT " * 100_000 + "true", "MATCH " + "(a)-->" * 50_000,
        "RETURN " + "1 + " * 100_000 + "1",
        "RETURN " + "[x IN " * 5_000, "'" * 999_999, "x" * 2_000_000, "RETURN " + "-" * 100_000 + "1",
        "RETURN " + "CASE WHEN " * 5_000, "RETURN " + "{a: " * 5_000, "MATCH (n) RETURN n." + "a." * 5_000 + "a",
    ],
    ids=lambda text: text[:14],
)  # fmt: skip
def test_hostile_texts_are_refused_quickly(graph: Graph, text: str) -> None:
    with pytest.raises(CondgraphError):
        graph.cypher(text, timeout=5)


def test_texts_of_cypher_are_recognised() -> None:
    for text in (
        "MATCH (n) RETURN n", "match (n) return n", "// all\nMATCH p = (a)-->(b) RETURN p", "UNWIND [1] AS x RETURN x",
        "RETURN 1 AS x",
        "WITH 1 AS x RETURN x", "OPTIONAL MATCH (n) RETURN n", "CALL { RETURN 1 AS x } RETURN x", "CREATE (n) RETURN n",
    ):  # fmt: skip
        assert detect(text) == "cypher"
    assert detect("Find(Nepal) QueryName()") == "kopl"


def test_nodes_that_a_constant_names_are_found_without_a_scan(graph: Graph) -> None:
    """Sets by name, attribute and the rows before restrict patterns, in every direction, and change no answer."""
    plan = graph.explain("MATCH (p {name: 'Keanu'})-[:`acted in`]->(f) RETURN f")
    assert "ByName('Keanu')" in plan
    for pattern, expected in (
        ("(p {name: 'Keanu'})-[:`acted in`]->(f)", ["Speed", "The Matrix"]),
        ("(p {name: 'Keanu'})-[:`acted in`]-(f)", ["Speed", "The Matrix"]),
        ("(f)<-[:`acted in`]-(p {name: 'Keanu'})", ["Speed", "The Matrix"]),
        ("(p {name: 'Keanu'})-[:`acted in`]->(f {title: 'Speed'})", ["Speed"]),
        ("(p {name: 'Keanu'})-[:`acted in`]->(f {released: 1999})", ["The Matrix"]),
        ("(f {title: 'The Matrix'})-[:directed]-(p)", ["The Matrix"]),
        ("(p)-[:`acted in`]->(f {title: 'Keanu'})", []),
    ):
        answer = graph.cypher(f"MATCH {pattern} RETURN f.title AS t ORDER BY t")
        assert answer.texts == expected
        assert answer.check()
    twice = graph.cypher("MATCH (p:actor {name: 'Keanu'}) MATCH (p)-[r]-(f:film) WHERE f.released > 1995 RETURN f.title AS t")
    assert twice.texts == ["The Matrix"]


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", ".*" * 200 + "b", "(.*a){20}b", "((a*)*)*c"])
def test_regular_expressions_take_linear_time(graph: Graph, pattern: str) -> None:
    answer = graph.cypher(
        "RETURN $text =~ $pattern AS a, 'aab' =~ $pattern AS b", {"text": "a" * 5_000, "pattern": pattern}, timeout=5
    )
    assert answer.values == [(False, pattern in ("(a+)+b", "(a|a)*b") or pattern.startswith(".*.*"))]
