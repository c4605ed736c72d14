"""Neo4j gives the answers that the snapshot gives, and gives back the graph that was loaded; on a
real server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph import Graph
from condgraph.engine.errors import OptionError, ReadOnlyError, StoreError, UnknownNameError
from condgraph.engine.facts import Entity, Ref, Source, Statement
from condgraph.remote_neo4j import Neo4jGraph
from tests.matrix.conftest import Oracle
from tests.support.differential import Comparison
from tests.support.lanes import by_lane
from tests.support.neo4j_servers import pushed
from tests.support.world import PROGRAMS, contents
from tests.support.world import world as small_world

pytestmark = pytest.mark.xdist_group("neo4j")


@pytest.fixture(scope="module")
def world(neo4j_uri: str) -> Iterator[tuple[Graph, Neo4jGraph]]:
    with pushed(small_world(), neo4j_uri, "small world") as pair:
        yield pair


def test_round_trip(world: tuple[Graph, Neo4jGraph]) -> None:
    local, remote = world
    assert contents(remote.snapshot()) == contents(local)
    assert remote.status().counts == local.status().counts
    assert {source.name for source in remote.status().sources} == {"world", "other"}


@pytest.mark.parametrize("bounds", [{"timeout": 0}, {"timeout": -1.5}, {"limit": -1}])
def test_bounds_that_mean_nothing_are_refused(world: tuple[Graph, Neo4jGraph], bounds: dict[str, float]) -> None:
    for graph in world:
        with pytest.raises(OptionError, match=r"is in seconds and more than 0|is the most values to give"):
            graph.query("FindAll() QueryName()", **bounds)  # type: ignore[arg-type]


def test_the_same_load_twice_changes_nothing(world: tuple[Graph, Neo4jGraph]) -> None:
    local, remote = world
    count = "MATCH (n {graph: $graph}) OPTIONAL MATCH (n)-[r]->() RETURN count(DISTINCT n) AS nodes, count(r) AS edges"
    before = remote.cypher(count.replace("$graph", "'small world'"))
    remote.push(local)
    assert remote.cypher(count.replace("$graph", "'small world'")) == before


@pytest.mark.parametrize("program", PROGRAMS)
def test_equal_answers(world: tuple[Graph, Neo4jGraph], program: str) -> None:
    local, remote = world
    here, there = local.kopl(program), remote.kopl(program)
    assert (there.texts, there.values, there.entities) == (here.texts, here.values, here.entities)
    # A graph of this name in process has the query that the server was asked, but for a look whether several names are there.
    mine = Graph.of(local.current, "small world").kopl(program).cypher
    assert mine is not None
    if mine != there.cypher:
        for name, value in re.findall(r"(?m)^:param (\w+) => (.*);$", mine):
            mine = re.sub(rf"\${name}\b", lambda _, value=value: value, mine)  # type: ignore[misc]
        rows = str(remote.cypher(re.sub(r"(?m)^:param.*$", "", mine)))
        assert all(repr(entity.id) in rows for entity in here.entities)
    assert [step.size for step in there.trace if step.function in ("Find", "Relate", "And", "Or")] == [
        step.size for step in here.trace if step.function in ("Find", "Relate", "And", "Or")
    ]


def test_oracle_programs(oracle_pair: Oracle) -> None:
    programs = [one for found in oracle_pair.programs.values() for one in found[:: by_lane(20, 10, 5)]]
    found = Comparison(oracle_pair.here, oracle_pair.there).ask_all(programs)
    assert len(programs) > by_lane(45, 95, 150)
    assert not found.different, found.report()


def test_unknown_names_are_errors(world: tuple[Graph, Neo4jGraph]) -> None:
    _, remote = world
    with pytest.raises(UnknownNameError, match="entity 'Nobody'"):
        remote.kopl("Find(Nobody) QueryAttr(height)")
    with pytest.raises(UnknownNameError, match="relation 'kows'"):
        remote.kopl("Find(Ann) Relate(kows, forward)")
    assert remote.kopl("Find(Nobody) QueryAttr(height)", on_unknown="empty").texts == []


def test_loading_through_the_api(neo4j_uri: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first.txt", tmp_path / "second.txt"
    first.write_text("A|r|B\nA|r|C\nB|s|C\n")
    second.write_text("A|r|C\nC|s|A\n")
    local, remote = condgraph.open(), condgraph.open(neo4j_uri, graph="api")
    assert isinstance(remote, Neo4jGraph)
    remote.store.delete()
    for graph in (local, remote):
        report = graph.load(first)
        assert report.statements == 3
        assert graph.load(second).added["relations"] == 1
    assert contents(remote.snapshot()) == contents(local)
    assert {source.name for source in remote.status().sources} == {"first", "second"}
    remote.store.delete()


def test_an_existing_driver(neo4j_uri: str, world: tuple[Graph, Neo4jGraph]) -> None:
    import neo4j

    with neo4j.GraphDatabase.driver(neo4j_uri) as driver:
        opened = condgraph.open(driver, graph="small world")
        assert opened.kopl("Find(Ann) QueryAttr(height)").texts == ["1.7 metre"]
        opened = condgraph.open(driver, graph="small world", read_only=True)
        with pytest.raises(ReadOnlyError):
            opened.add([Statement("a", "p", Ref("b"))])
        opened.close()
        driver.verify_connectivity()


def test_a_py2neo_graph(neo4j_uri: str, world: tuple[Graph, Neo4jGraph]) -> None:
    py2neo = pytest.importorskip("py2neo")
    local, _ = world
    given = py2neo.Graph(neo4j_uri)
    assert given.run("RETURN 1").evaluate() == 1
    with condgraph.open(given, graph="small world") as opened:
        assert opened.kopl("Find(Ann) QueryAttr(height)").texts == ["1.7 metre"]
        assert opened.status().counts == local.status().counts
    assert given.run("RETURN 2").evaluate() == 2


def test_a_load_goes_on_where_it_was_ended(neo4j_uri: str) -> None:
    local = small_world()
    remote = condgraph.open(neo4j_uri, graph="ended")
    assert isinstance(remote, Neo4jGraph)
    remote.store.delete()
    transaction = remote.store.connection.transaction
    for allowed in (2, 5, 8, 9, 1000):
        left = [allowed]

        def failing(work: Any, left: list[int] = left, **options: Any) -> Any:
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return transaction(work, **options)

        remote.store.connection.transaction = failing  # type: ignore[method-assign,assignment]
        if allowed < 1000:
            with pytest.raises(KeyboardInterrupt):
                remote.push(local)
            with pytest.raises(StoreError):
                remote.kopl("FindAll() Count()")
        else:
            remote.push(local)
    remote.store.connection.transaction = transaction  # type: ignore[method-assign]
    assert contents(remote.snapshot()) == contents(local)
    remote.store.delete()


def test_sources_of_a_pulled_graph(world: tuple[Graph, Neo4jGraph]) -> None:
    _, remote = world
    answer = remote.snapshot().kopl("Find(Ann) QueryAttr(height)")
    assert answer.evidence[0].sources == ((Source("world", "", "api"), 0),)


@pytest.mark.parametrize(
    "program",
    [
        "Find(Ann) Find(Anne) Or() QueryName()",
        "Find(Anne) FindAll() Or() Count()",
        "Find(Ann) Find(Anne) SelectBetween(height, greater)",
        "Find(Anne) Relate(knowz, forward) QueryName()",
        "Find(Anne) QueryAttr(height) VerifyNum(tall, =)",
        f"Find({'x' * 5_000}) QueryName()",
    ],
)
def test_a_name_that_is_not_there_is_an_error_whatever_else_is(world: tuple[Graph, Neo4jGraph], program: str) -> None:
    found = Comparison(*world)
    assert found.ask(program), found.report()
    assert found.errors == {"UnknownNameError": 1}


def test_names_are_looked_up_by_the_one_query(world: tuple[Graph, Neo4jGraph]) -> None:
    _, there = world
    connection = there.store.connection
    read, asked = connection.read, list[str]()

    def counting(text: str, *arguments: Any, **options: Any) -> list[dict[str, Any]]:
        asked.append(text)
        return read(text, *arguments, **options)

    there.kopl("FindAll() Count()")
    connection.read = counting  # type: ignore[method-assign]
    try:
        assert there.kopl("Find(Ann) Find(Bo) Or() QueryName()").texts == ["Ann", "Bo"]
        assert there.kopl("Find(Ann) Relate(knows, forward) QueryName()").texts == ["Bo"]
    finally:
        connection.read = read  # type: ignore[method-assign]
    assert len([text for text in asked if not text.startswith("MATCH (g:")]) == 2


def test_long_names_whose_answer_is_empty(neo4j_uri: str) -> None:
    """Names of more bytes than an index takes stand in it as their hash, and are looked up by that."""
    here = condgraph.open()
    names = [letter * 3_000 + end for letter in "x\u00e9" for end in "ab"]
    here.add([Statement("a", "to", Ref("b")), *(Entity(f"n{at}", name) for at, name in enumerate(names))], source="s")
    with pushed(here, neo4j_uri, "long names") as pair:
        for name in [*names, names[0] + "c"]:
            found = Comparison(*pair)
            assert found.ask(f"Find({name}) Relate(to, forward) Count()"), found.report()


def test_nearest_names_of_a_large_graph(world: tuple[Graph, Neo4jGraph], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large graph the names that stand around the one asked for are looked at, here and there."""
    for module in ("condgraph.engine.schema", "condgraph.cypher.store"):
        monkeypatch.setattr(f"{module}.MAX_COMPARED", 0)
        monkeypatch.setattr(f"{module}.NEARBY", 2)
    found = Comparison(*world)
    assert found.ask_all([f"Find({name}) QueryName()" for name in ("An", "Boo", "humans")]).equal == 3, found.report()
