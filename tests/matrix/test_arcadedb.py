"""ArcadeDB over Bolt, which says that it is a Neo4j 5.26: our layout in its words, and databases that are there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import condgraph
from condgraph import Graph
from condgraph.cypher.servers import ARCADEDB, NEO4J, engine_of
from condgraph.engine.errors import LoadError, ReadOnlyError, StoreBusyError, StoreMissingError, UnsupportedError
from condgraph.engine.facts import Entity, EntityKind, Member, Ref, Statement
from condgraph.remote_neo4j import Neo4jGraph
from tests.matrix.test_random_rows import check, made
from tests.matrix.test_unfinished import MORE, dump, ended
from tests.support.cases import case, differences
from tests.support.differential import Comparison
from tests.support.lanes import by_lane
from tests.support.samples import load_samples
from tests.support.world import PROGRAMS, contents, world

pytestmark = [pytest.mark.xdist_group("arcadedb"), pytest.mark.slow]


@pytest.fixture
def remote(arcadedb_address: str) -> Iterator[Neo4jGraph]:
    with condgraph.open(arcadedb_address, graph="tested") as graph:
        assert isinstance(graph, Neo4jGraph)
        yield graph


def ugly() -> Graph:
    """Predicates with whatever a relationship type of the server cannot be called."""
    graph = condgraph.open()
    names = ["a, b", "50%2C", "x*y~z", "back\\slash", "\\u0060", "IS", "IS (predicate)", "日本/:;", "%", "Case", "case"]
    graph.add([Statement(f"s{i}", name, Ref("o")) for i, name in enumerate(names)], source="ugly")
    graph.add([Statement(f"s{i}", name, "text") for i, name in enumerate(names)], source="ugly values")
    return graph


def test_engines_are_known_by_what_they_say() -> None:
    assert engine_of("Neo4j/5.26.14") is NEO4J
    assert engine_of("Neo4j/5.26.0 compatible (ArcadeDB 26.10.2)") is ARCADEDB


def test_a_graph_grows_and_shrinks_as_in_process(remote: Neo4jGraph) -> None:
    here = load_samples(condgraph.open())
    load_samples(remote)
    assert remote.store.connection.engine is ARCADEDB
    assert contents(remote.snapshot()) == contents(here)
    before = remote.store.content
    load_samples(remote)
    assert remote.store.content == before
    for graph in (here, remote):
        graph.unload("mountains")
    assert contents(remote.snapshot()) == contents(here)
    remote.delete()
    assert remote.store.connection.read("MATCH (n) RETURN count(n) AS n", {}) == [{"n": 0}]


def test_the_world_and_its_programs(remote: Neo4jGraph) -> None:
    here = world()
    remote.push(here)
    assert contents(remote.snapshot()) == contents(here)
    compared = Comparison(here, remote).ask_all(PROGRAMS, warnings=True, evidence=True)
    assert not compared.different, compared.report()
    for graph in (here, remote):
        graph.add("Ann", "a, b", "Bo's own")
        graph.retract(graph.kopl("Find(Ann) QueryAttr(height)").evidence[0])
    assert contents(remote.snapshot()) == contents(here)


def test_predicates_are_called_as_they_are(remote: Neo4jGraph) -> None:
    here = ugly()
    remote.push(here)
    assert contents(remote.snapshot()) == contents(here)
    compared = Comparison(here, remote)
    for predicate in sorted({statement.predicate for statement in here.query("FindAll()").evidence} | {"a, b", "x*y~z", "Case"}):
        compared.ask(f"Find(o) Relate({json.dumps(predicate)}, backward) QueryName()", evidence=True)
        compared.ask(f"Find(s0) QueryAttr({json.dumps(predicate)})")
    for number in range(11):
        compared.ask(f"Find(s{number}) Find(o) QueryRelation()", evidence=True)
    assert not compared.different, compared.report()


def test_what_the_server_would_refuse_is_refused_before(remote: Neo4jGraph, arcadedb_address: str) -> None:
    with pytest.raises(LoadError, match="has 200 bytes where 180 are the most, which ArcadeDB"):
        remote.add([Statement("a", "p" * 200, "x")])
    remote.store.connection.write("CREATE (:person {name: 'Ann'})", {})
    with pytest.raises(LoadError, match="'person' is called as a label of the database is"):
        remote.add([Statement("a", "person", Ref("b"))])
    assert remote.store.connection.read("MATCH (n) RETURN count(n) AS n", {}) == [{"n": 1}]
    with condgraph.open(arcadedb_address, graph="labelled", labels=True) as graph, pytest.raises(UnsupportedError, match="labels"):
        graph.add([Entity("c", "c", EntityKind.CONCEPT), Member("a", "c"), Statement("a", "knows", Ref("b"))])


def test_an_unfinished_load_is_taken_back(remote: Neo4jGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    local = world()
    remote.push(local)
    before = dump(remote)
    for after in by_lane((11,), (1, 5, 9, 13, 17, 21), tuple(range(1, 26))):
        assert ended(remote, monkeypatch, after, lambda: remote.add(MORE, source="more"))
        with pytest.raises(StoreBusyError, match="is not finished"):
            remote.kopl("FindAll() Count()")
        assert remote.abandon()
        assert dump(remote) == before
    remote.add(MORE, source="more")
    local.add(MORE, source="more")
    assert contents(remote.snapshot()) == contents(local)


def test_a_first_load_is_taken_back(remote: Neo4jGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(remote, monkeypatch, 5, lambda: remote.push(world()))
    assert remote.abandon()
    with pytest.raises(StoreMissingError):
        remote.status()


WRITES = [
    "CREATE (n) RETURN n",
    "MATCH (n) SET n.x = 1 RETURN n",
    "MATCH (n) DETACH DELETE n",
    "MATCH (n) CALL (n) { SET n.x = 1 } RETURN n",
    "MERGE (n:New) RETURN n",
    "LOAD CSV FROM 'file:///etc/passwd' AS line RETURN line",
    "CALL db.create()",
    "MATCH (n) WHERE n.name = 'a\\' OR true SET n.x = 1 // ' RETURN n",
    "MATCH (n) WHERE n.name = '\\u0027 RETURN n",
    "MATCH (n) RETURN n; MATCH (n) DELETE n",
    "EXPLAIN MATCH (n) DELETE n",
    "MATCH (n) RETURN n // \rDELETE n",
    "MATCH (n) FOREACH (x IN [1] | SET n.x = x) RETURN n",
    "MATCH (n:$(n.x)) RETURN n",
]


@pytest.mark.parametrize("text", WRITES)
def test_texts_that_may_write_are_refused(remote: Neo4jGraph, text: str) -> None:
    """The server writes in sessions that are opened for reading, so that only the text tells."""
    connection = remote.store.connection
    connection.write("CREATE (:Person {name: 'Ann'})", {})
    with pytest.raises(ReadOnlyError):
        remote.cypher(text)
    assert connection.read("MATCH (n) RETURN labels(n) AS labels, properties(n) AS properties", {}) == [
        {"labels": ["Person"], "properties": {"name": "Ann"}}
    ]


def test_texts_that_read_are_passed_on(remote: Neo4jGraph) -> None:
    remote.store.connection.write("UNWIND ['Ann', 'it is // no /* comment'] AS name CREATE (:Person {name: name})", {})
    text = "MATCH (n:Person) WHERE n.name <> 'it is // no /* comment' AND n.name = $name RETURN n.name AS name"
    assert remote.cypher(text, {"name": "Ann"}) == [{"name": "Ann"}]
    assert remote.cypher("MATCH (n:Person) RETURN count(*) AS n") == [{"n": 2}]


def test_a_database_of_others_holds_no_graph(remote: Neo4jGraph, arcadedb_address: str) -> None:
    """It is asked where it is (`tests/native/test_arcadedb.py`); with the layout of ours it is asked in Cypher alone."""
    remote.store.connection.write("CREATE (:Person {name: 'Ann'})", {})
    with condgraph.open(arcadedb_address) as graph:
        assert graph.query("Find(Ann) QueryName()").values == ["Ann"]
    with condgraph.open(arcadedb_address, layout="condgraph") as graph:
        assert graph.cypher("MATCH (n) RETURN n.name AS name") == [{"name": "Ann"}]


def test_patterns_are_found_by_plans(remote: Neo4jGraph) -> None:
    here = world()
    remote.push(here)
    pattern = "('UNKNOWN 1', 'knows', 'Bo')"
    before = [str(match) for match in here.match(pattern)]
    assert [str(match) for match in remote.match(pattern)] == before
    for graph in (here, remote):
        graph.add("Eve", "knows", Ref("b"))
    # What the client knew is of another content.
    after = [str(match) for match in here.match(pattern)]
    assert [str(match) for match in remote.match(pattern)] == after != before
    with pytest.raises(UnsupportedError, match=r"ArcadeDB.*approximate index of names.*exact=True"):
        remote.match(pattern, exact=False)


@pytest.mark.parametrize("number", range(by_lane(1, 4, 42)))
def test_random_programs(remote: Neo4jGraph, number: int) -> None:
    given = case(number)
    here = given.local
    remote.push(here)
    result = list(differences(given, here, remote, warnings=True))
    assert not result, f"{len(result)} differences\n" + "\n".join(str(item)[:3_000] for item in result[:4])


def test_random_rows(remote: Neo4jGraph) -> None:
    here = made(raw=False)
    remote.push(here)
    check(here, remote.store, range(20_000, 20_000 + by_lane(12, 60, 600)), warnings=lambda seed: seed % 6 == 0)


@pytest.mark.slow
def test_all_programs_of_the_oracle(remote: Neo4jGraph, oracle: Path) -> None:
    here = condgraph.open()
    here.load(oracle / "kb_small.json")
    remote.push(here)
    programs = [json.loads(line)["program"] for line in (oracle / "programs_small.jsonl").read_text(encoding="utf-8").splitlines()]
    compared = Comparison(here, remote).ask_all(programs)
    assert not compared.different, compared.report()
    assert compared.equal == len(programs)
