"""Databases of others on an ArcadeDB: asked where they are, with the answers and evidence of Neo4j, and left as they are."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import neo4j
import pytest

import condgraph
from condgraph.cypher.native.introspect import look
from condgraph.cypher.servers import ARCADEDB
from condgraph.engine.errors import ReadOnlyError, UnsupportedError
from condgraph.graph import Graph
from condgraph.remote_native import NativeGraph, typed
from tests.native.test_northwind_by_hand import QUESTIONS, rounded
from tests.native.test_programs import Pick, words_of
from tests.support.asked_movies import agreed, difference, questions
from tests.support.differential import Comparison
from tests.support.lanes import by_lane
from tests.support.native_databases import movies, northwind
from tests.support.plain_rows import rows_of
from tests.support.programs import as_text
from tests.support.programs import program as kopl_program

pytestmark = [pytest.mark.xdist_group("arcadedb"), pytest.mark.reads_data, pytest.mark.slow]
_LOADS = {"movies": movies, "northwind": northwind}
_DUMP = (
    "MATCH (x) RETURN elementId(x) AS id, labels(x) AS labels, properties(x) AS held ORDER BY id",
    "MATCH (a)-[x]->(b) RETURN elementId(x) AS id, elementId(a) AS a, type(x) AS t, elementId(b) AS b, properties(x) AS held "
    "ORDER BY id",
    "SHOW INDEXES",
    "SHOW CONSTRAINTS",
    "CALL db.labels() YIELD label RETURN label ORDER BY label",
    "CALL db.relationshipTypes() YIELD relationshipType AS name RETURN name ORDER BY name",
)


class Sessions:
    """Sessions of one database of a server."""

    def __init__(self, server: Any, name: str) -> None:
        self._driver = neo4j.GraphDatabase.driver(f"bolt://127.0.0.1:{server.bolt}", auth=("root", server.password))
        self._name = name

    def session(self, **options: Any) -> neo4j.Session:
        return self._driver.session(database=self._name, **options)

    def rows(self, text: str) -> list[dict[str, Any]]:
        with self.session() as session:
            return [row.data() for row in session.run(text)]

    def close(self) -> None:
        self._driver.close()


@dataclass(frozen=True)
class Pair:
    """A database asked where it is, and the same pulled into process."""

    name: str
    there: NativeGraph
    here: Graph
    sessions: Sessions


def dump(sessions: Sessions) -> str:
    """All that a database holds."""
    return json.dumps([sorted(map(repr, sessions.rows(text))) for text in _DUMP])


def opened(server: Any, name: str) -> Iterator[tuple[NativeGraph, Sessions]]:
    """An empty database of the server for as long as it is used; what it holds is filled in by the caller."""
    server.create(name)
    sessions = Sessions(server, name)
    try:
        if name in _LOADS:
            _LOADS[name](sessions)  # type: ignore[operator]
        before = dump(sessions)
        with condgraph.open(server.address(name)) as there:
            assert isinstance(there, NativeGraph)
            yield there, sessions
        # Whatever was asked: nothing was written.
        assert dump(sessions) == before
    finally:
        sessions.close()
        server.drop(name)


@pytest.fixture(scope="module", params=list(_LOADS))
def pair(request: pytest.FixtureRequest, arcadedb_server: Any) -> Iterator[Pair]:
    for there, sessions in opened(arcadedb_server, request.param):
        yield Pair(request.param, there, there.snapshot(), sessions)


def test_what_it_is_taken_for(pair: Pair) -> None:
    assert pair.there.store.connection.engine is ARCADEDB
    assert not pair.there.mapping.warnings
    unique = {node.label: (node.name, node.unique) for node in pair.there.mapping.nodes}
    assert (
        unique
        == {
            "movies": {"Movie": (("title",), "title"), "Person": (("name",), "name")},
            "northwind": {
                "Category": (("categoryName",), "categoryID"),
                "Customer": (("companyName",), "customerID"),
                "Order": ((), "orderID"),
                "Product": (("productName",), "productID"),
                "Supplier": (("companyName",), "supplierID"),
            },
        }[pair.name]
    )


def test_random_programs(pair: Pair) -> None:
    """Answers and evidence are those of the same database in process."""
    words, compared = words_of(pair.here), Comparison(pair.here, pair.there)
    for seed in range(by_lane(8, 20, 200)):
        compared.ask(as_text(kopl_program(Pick(seed), words=words, most=3)), evidence=True)
    # A name that is written otherwise is known there, and none in process.
    compared.different = [each for each in compared.different if not each[1].error.startswith("UnknownNameError")]
    assert not compared.different, compared.report()[:6_000]
    assert compared.equal > sum(compared.errors.values())


def test_questions_with_known_answers(pair: Pair, data: Path) -> None:
    """Of Movies what two models agreed on, of Northwind Cypher that was written by hand and is asked of the server itself."""
    if pair.name == "movies":
        records = agreed(data)
        asked = questions()[:: by_lane(8, 4, 1)]
        wrong = [text for each in asked if (text := difference(each, records[each.text], each.rows(pair.there)))]
        assert not wrong
        return
    for question in QUESTIONS[:: by_lane(12, 6, 1)]:
        table = {"table": question["table"]} if "table" in question else {}
        rows = Counter(map(rounded, rows_of(pair.there.query(question["program"], **table))))
        expected = Counter(rounded(tuple(row.values())) for row in pair.sessions.rows(question["cypher"]))
        assert rows == expected, question["program"]


def test_patterns(pair: Pair) -> None:
    relation = pair.here.current.schema.relations[0]
    pattern = f"('UNKNOWN 1', {relation!r}, 'UNKNOWN 2')"
    here, there = ([str(match) for match in graph.match(pattern, k=5)] for graph in (pair.here, pair.there))
    assert here == there
    assert len(here) == 5


def test_nothing_is_written(pair: Pair) -> None:
    with pytest.raises(ReadOnlyError):
        pair.there.add("a", "b", "c")
    with pytest.raises(ReadOnlyError):
        pair.there.cypher("MATCH (n) SET n.x = 1 RETURN n")
    assert pair.there.cypher("MATCH (n:Movie|Order) RETURN count(n) AS n") == [{"n": {"movies": 38, "northwind": 830}[pair.name]}]


UGLY = [
    "CREATE (:Thing {title: 'A  b', list: [1, 2, 2], mixed: 1, day: date('2020-02-29'), yes: true})",
    "CREATE (:Thing {title: 'Zoë', list: ['x', 'y'], mixed: 'one', at: datetime('2020-01-01T10:00:00+02:00'), f: 1.5})",
    "CREATE (:Thing {title: '', list: [], mixed: 2.5, at: localdatetime('1960-01-01T10:00:00'), f: 1e300, big: 9007199254740993})",
    "CREATE (:`Of \"two\"` {note: 'tab\\tin it', mixed: [1, 'a'], `odd key`: 'x', lasts: duration('P1Y2M')})",
    "CREATE (:Other {day: date('1999-12-31'), at: datetime('1999-12-31T23:59:59Z'), mixed: localtime('10:00:01'), f: 2})",
    "CREATE (:`Of \"two\"`:Thing {note: 'both', title: 'Both'})",
    "MATCH (a:Thing {title: 'Both'}), (b:Thing {title: 'Zoë'}) "
    "CREATE (a)-[:`leads to` {since: date('2001-01-01'), w: [0.5, 1.0]}]->(b), (b)-[:`leads to`]->(b), (a)-[:`leads to`]->(b)",
]


def test_ugly_properties(arcadedb_server: Any) -> None:
    """Values of several types, lists, texts with odd white space, nodes of two labels, keys that are no words."""
    arcadedb_server.create("ugly")
    sessions = Sessions(arcadedb_server, "ugly")
    try:
        for text in UGLY:
            sessions.rows(text)
        before = dump(sessions)
        with condgraph.open(arcadedb_server.address("ugly"), layout="native") as there:
            here = there.snapshot()
            (node,) = [node for node in look(there.store.connection, typed).nodes if node.label == "Thing"]
            types = {prop.key: {name for name, _ in prop.types} for prop in node.properties}
            assert types["mixed"] == {"INTEGER", "STRING", "FLOAT"}
            assert types["list"] == {"LIST<INTEGER NOT NULL>", "LIST<STRING NOT NULL>", "LIST<>"}
            compared = Comparison(here, there)
            for name in sorted({*here.current.schema.attributes, *here.current.schema.relations}):
                quoted = json.dumps(name)
                compared.ask(f"FindAll() QueryAttr({quoted})", evidence=True)
                compared.ask(f"FindAll() Relate({quoted}, forward) QueryName()", evidence=True)
                compared.ask(f"FindAll() SelectAmong({quoted}, largest)", evidence=True)
                compared.ask(f"FindAll() FilterDate({quoted}, 2000-01-01, <)", evidence=True)
                compared.ask(f"FindAll() FilterNum({quoted}, 2, >)", evidence=True)
            for name in ("A b", "Zoë", "Both"):
                compared.ask(f"Find({json.dumps(name)}) QueryName()", evidence=True)
            compared.ask('FindAll() QueryRelationQualifier("leads to", since)', evidence=True)
            assert not compared.different, compared.report()[:6_000]
            # Nodes without a name are called by the whole id: the number at its end is that of several.
            nameless = here.query('FindAll() FilterConcept("Of \\"two\\"") QueryName()').values
            assert any("#" in name for name in nameless), nameless
            for name in nameless:
                assert there.query(f"Find({json.dumps(name)}) Count()").values == [1]
            with pytest.raises(UnsupportedError, match="approximate"):
                there.match("('UNKNOWN 1', 'leads to', 'Zoë')", exact=False)
        assert dump(sessions) == before
    finally:
        sessions.close()
        arcadedb_server.drop("ugly")
