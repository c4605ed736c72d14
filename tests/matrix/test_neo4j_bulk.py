"""The files for Neo4j's import tool: loaded by the real tool into an empty store, they give an
equal graph, indexes included.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgraph
from condgraph import Graph
from condgraph.cypher.layout.schema import CONSTRAINTS, INDEXES
from condgraph.cypher.load import bulk
from condgraph.engine.errors import LoadError, OptionError
from condgraph.engine.facts import Entity, EntityKind, Ref, Source, Sourced, Statement
from condgraph.engine.identity import content_digest
from condgraph.engine.values import Quantity, Time
from condgraph.remote_neo4j import Neo4jGraph
from tests.matrix.test_parquet_export import UGLY
from tests.support.servers import running
from tests.support.world import contents, items

pytestmark = pytest.mark.xdist_group("neo4j")

MORE = [
    Source('second; "quoted", source'),
    Sourced(
        Statement("a", "height", Quantity(1.5, "metre"), (("since", Time.year(2000)),)),
        (("world", 3), ('second; "quoted", source', 7)),
    ),
    Sourced(Entity("row 1", "row 1", EntityKind.ROW, 1), (("world", 1),)),
    Statement("row 1", "score", "5-10", raw=" 5-10 "),
    Statement("a", "empty", ""),
    Statement("a", "lines", 'one\ntwo "three", four; five\\six'),
    Statement("a", "huge", Quantity(10**400)),
    Statement("a", "term", Ref("b"), (("start time", Time.day(1999, 1, 1)), ("end time", Time.day(2001, 1, 1)))),
    Statement("a", "supplementary", "\U0001f600 and \uff21"),
]


def everything() -> Graph:
    local = condgraph.open()
    local.add([*items(), *MORE], source="world")
    return local


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=[pytest.mark.service, pytest.mark.slow]) for name in ("LTS", "CURRENT")],
)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Graph, Neo4jGraph]]:
    """A graph, and the same in a server of its own that the import tool of its version filled."""
    import neo4j_server

    local, folder = everything(), tmp_path_factory.mktemp("import")
    local.export(folder, to="neo4j-import")
    server = neo4j_server.Neo4jServer(getattr(neo4j_server, request.param), short=True)

    def imported() -> None:
        server.admin(*(folder / "import.args").read_text("utf-8").splitlines(), folder=folder)

    with running(server, "Neo4j", before=imported), condgraph.open(server.uri, read_only=True) as remote:
        assert isinstance(remote, Neo4jGraph)
        yield local, remote


def test_the_graph_is_equal(imported: tuple[Graph, Neo4jGraph]) -> None:
    local, remote = imported
    assert contents(remote.snapshot()) == contents(local)
    assert remote.schema() == local.schema()
    assert remote.status().counts == local.status().counts
    for program in ("FindAll() QueryAttr(height)", "Find(Ann) Relate(knows, forward) QueryName()", "Find(Ann) QueryAttr(huge)"):
        assert remote.kopl(program).texts == local.kopl(program).texts


def test_the_first_who_opens_it_makes_the_indexes(imported: tuple[Graph, Neo4jGraph]) -> None:
    _, remote = imported
    remote.status()
    rows = remote.store.connection.read("SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'condgraph' RETURN name, state", {})
    assert len(rows) == len(CONSTRAINTS) + len(INDEXES)
    assert {row["state"] for row in rows} == {"ONLINE"}


def test_the_store_is_as_one_written_over_bolt(imported: tuple[Graph, Neo4jGraph], neo4j_uri: str) -> None:
    """Not only the graph is equal: every node and relationship has the same properties."""
    local, remote = imported
    # Other tests leave their data in that server, where labels have to be asked for.
    written = condgraph.open(neo4j_uri, graph="default", labels=True)
    assert isinstance(written, Neo4jGraph)
    written.store.delete()
    written.push(local)
    nodes = "MATCH (n {graph: 'default'}) RETURN labels(n) AS labels, properties(n) AS properties"
    edges = (
        "MATCH (a {graph: 'default'})-[r]->(b) RETURN type(r) AS type, properties(r) AS properties, "
        "properties(a) AS a, properties(b) AS b"
    )
    for text in (nodes, edges):
        here, there = (sorted(map(flat, graph.store.connection.read(text, {}))) for graph in (written, remote))
        assert there == here
    written.store.delete()


def flat(value: Any) -> str:
    """A row as text; a list without parts is none, which files cannot tell apart."""
    if isinstance(value, dict):
        return repr(sorted((key, flat(one)) for key, one in value.items() if one != []))
    return repr(sorted(value) if isinstance(value, list) and all(isinstance(one, str) for one in value) else value)


def test_rows_have_the_properties_of_values() -> None:
    """Loads over Bolt and files write what a single change writes."""
    from condgraph.cypher.layout.base import value_of
    from condgraph.cypher.layout.schema import value_properties
    from condgraph.cypher.load.batches import CELL, cells

    snapshot = everything().current
    for family, size in (("att", snapshot.statements - snapshot.relations), ("q", len(snapshot.arrays.get("q.owner")))):
        for cell in cells(snapshot, family, np.arange(size)):
            kept = {name: value for name, value in zip(CELL, cell, strict=True) if value is not None}
            if kept["kind"] != "entity":
                assert kept == value_properties(value_of(kept))


def test_the_files_load_to_an_equal_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "_CHUNK", 3)
    local, folder = condgraph.open(), tmp_path / "files"
    # The files of a larger graph remain in the folder, and are no part of the next one.
    everything().export(folder, to="neo4j-import")
    local.add([Source("nothing")])
    for items_of_graph in ([], [*items(), *MORE, *UGLY]):
        local.add(items_of_graph, source="world")
        local.export(folder, to="neo4j-import")
        copy, spilled = condgraph.open(), condgraph.open(tmp_path / f"store {len(items_of_graph)}")
        report = copy.load(folder)
        assert (report.formats, report.warnings) == (("neo4j-import",), ())
        assert contents(copy) == contents(local)
        assert content_digest(copy.current) == content_digest(local.current)
        spilled.load(folder, memory="512 MiB")
        assert content_digest(spilled.current) == content_digest(local.current)


@pytest.mark.parametrize("file", ["attributes", "entities", "graph", "qualifiers", "qualifiers_of_s", "relations", "values"])
def test_files_that_are_cut_are_an_error(file: str, tmp_path: Path) -> None:
    everything().export(tmp_path, to="neo4j-import")
    path = tmp_path / f"{file}.csv"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    with pytest.raises(LoadError, match=rf"{file}\.csv is not as it was written"):
        condgraph.open().load(tmp_path)
    (tmp_path / "checksums.json").unlink()
    with pytest.raises(LoadError, match="do not fit together"):
        condgraph.open().load(tmp_path)


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    local = condgraph.open()
    local.add([Statement("a", "p", "x")], source="with \x1f in it")
    with pytest.raises(OptionError, match="control character"):
        local.export(tmp_path, to="neo4j-import")
    with pytest.raises(OptionError, match="cannot be written"):
        everything().export("/proc/nothing", to="neo4j-import")
    with pytest.raises(OptionError, match="folder"):
        everything().export((tmp_path / "x").open("w"), to="neo4j-import")
