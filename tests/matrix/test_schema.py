"""What a graph holds is the same on every store: in process, in a folder, on Neo4j and on RDF
stores; whether it was pushed or loaded in parts, and after what it held was added to.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import DeadlineError, StoreDamagedError, StoreMissingError, UnknownNameError
from condgraph.graph import Graph
from condgraph.overview.survey import NOTE
from condgraph.remote import RemoteGraph
from condgraph.remote_neo4j import Neo4jGraph
from condgraph.samples import SAMPLES
from tests.support.odd_names import SCRIPT, items, odd_names
from tests.support.stores import marked
from tests.support.world import world

STORES = marked("neo4j", "oxigraph", nightly=("virtuoso",))
Opened = Callable[..., RemoteGraph]


@pytest.fixture(params=STORES, scope="module")
def there(request: pytest.FixtureRequest) -> Opened:
    """Opens a graph of a server, which has nothing in it."""
    if request.param == "neo4j":
        uri = request.getfixturevalue("neo4j_uri")

        def on_neo4j(name: str, *, read_only: bool = False) -> RemoteGraph:
            found: Any = condgraph.open(uri, graph=name, read_only=read_only)
            if not read_only:
                found.delete()
            return found  # type: ignore[no-any-return]

        return on_neo4j
    server: Any = request.getfixturevalue(f"{request.param}_server")
    options = {} if server.name == "virtuoso" else {"update": server.update}

    def on_rdf(name: str, *, read_only: bool = False) -> RemoteGraph:
        found: Any = condgraph.open(f"sparql+{server.query}", graph=name, read_only=read_only, **options)
        if not read_only:
            found.delete()
        return found  # type: ignore[no-any-return]

    return on_rdf


def alike(graph: Graph, local: Graph) -> None:
    """Everything that is said of both is equal."""
    whole = local.schema()
    assert graph.schema() == whole
    assert graph.schema(timeout=60).text(700) == whole.text(700)
    for name in (whole.sources[0].name, whole.sources[-1].name):
        assert graph.schema(source=name) == local.schema(source=name)
    for concept in whole.concepts[:5]:
        assert graph.schema(concept=concept.name) == local.schema(concept=concept.name)
    for predicate in whole.predicates:
        assert graph.schema(predicate=predicate.name) == local.schema(predicate=predicate.name)


@pytest.mark.parametrize("make", [world, odd_names])
def test_in_a_folder(make: Callable[[], Graph], tmp_path: Path) -> None:
    local = make()
    local.export(tmp_path / "all.jsonl")
    with condgraph.open(tmp_path / "store") as graph:
        graph.load(tmp_path / "all.jsonl")
    with condgraph.open(tmp_path / "store", read_only=True) as graph:
        alike(graph, local)
        graph.rdf()
        alike(graph, local)


@pytest.mark.parametrize("make", [world, odd_names])
def test_on_servers(make: Callable[[], Graph], there: Opened) -> None:
    graph, local = there("schema of all"), make()
    graph.push(local)  # type: ignore[attr-defined]
    alike(graph, local)
    with pytest.raises(UnknownNameError) as error:
        graph.schema(predicate="liks")
    with pytest.raises(UnknownNameError) as wanted:
        local.schema(predicate="liks")
    assert error.value.candidates == wanted.value.candidates
    with pytest.raises(DeadlineError):
        graph.schema(timeout=1e-6)
    # A second reader, and one that saw what was there before.
    reader = there("schema of all", read_only=True)
    alike(reader, local)
    graph.delete()
    graph.refresh()
    with pytest.raises(StoreMissingError):
        graph.schema()
    graph.close()
    reader.close()


def test_loads_one_after_the_other(there: Opened) -> None:
    graph, local = there("schema of parts"), condgraph.open()
    for sample in SAMPLES:
        for one in (graph, local):
            one.load(sample.path, format=sample.format, **sample.options)
        graph.refresh()
        alike(graph, local)
    for one in (graph, local):
        one.add(items(), source="odd")
    alike(graph, local)
    assert SCRIPT in {one.name for one in graph.schema().predicates}
    graph.delete()


def forgotten(graph: Any) -> None:
    """Take away what says what the graph holds, as of a graph that an earlier version wrote."""
    if isinstance(graph, Neo4jGraph):
        graph.store.connection.write("MATCH (g:CondgraphGraph {name: $name}) REMOVE g.survey", {"name": graph.name})
    else:
        base = graph.store.base
        graph.store.endpoint.update(f"DELETE WHERE {{ GRAPH <{base}> {{ <{base}> <pred:survey> ?o }} }}")
    graph.store.schema.kept.pop("survey", None)


def test_a_graph_of_an_earlier_version(there: Opened) -> None:
    graph, local = there("schema of old"), odd_names()
    graph.push(local)  # type: ignore[attr-defined]
    forgotten(graph)
    found, whole = graph.schema(), local.schema()
    assert found.note == NOTE
    assert [(one.name, one.statements) for one in found.predicates] == [(one.name, one.statements) for one in whole.predicates]
    assert found.units == whole.units
    if isinstance(graph, Neo4jGraph):
        # The same loaded again; RDF stores are written anew, as loads of earlier versions have other names.
        graph.push(local)  # type: ignore[attr-defined]
        alike(graph, local)
        graph.store.connection.write(
            "MATCH (g:CondgraphGraph {name: $name}) SET g.survey = g.content + ' 1 x'", {"name": graph.name}
        )
        graph.refresh()
        with pytest.raises(StoreDamagedError):
            graph.schema()
    graph.delete()


def test_notebooks_of_a_server(neo4j_uri: str) -> None:
    """Cypher gives its rows as a list that notebooks show."""
    with condgraph.open(neo4j_uri, graph="schema rows") as graph:
        graph.push(odd_names())  # type: ignore[attr-defined]
        rows = graph.cypher("MATCH (e:CondgraphEntity {graph: 'schema rows'}) RETURN e.name AS name")  # type: ignore[attr-defined]
        assert isinstance(rows, list)
        assert "<script" not in rows._repr_html_()  # type: ignore[attr-defined]
        assert "&lt;script&gt;" in rows._repr_html_()  # type: ignore[attr-defined]
        answer = graph.kopl("FindAll() QueryName()")
        assert "<script" not in answer._repr_html_()
        assert "&lt;script&gt;" in answer._repr_html_()
        assert neo4j_uri.split("/")[-1] in graph._repr_html_()
        graph.delete()
