"""The command line on a real Neo4j: loading, asking, the compiled query, Cypher of one's own, and
what is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import condgraph
from condgraph.cli.app import app
from condgraph.remote_neo4j import Neo4jGraph
from condgraph.samples import FOLDER
from condgraph.sparql.client import Endpoint

pytestmark = pytest.mark.xdist_group("neo4j")
ABOVE_7500 = "FindAll() FilterNum(height, 7500 m, >) QueryName()"
GRAPH = "command line"


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, arguments)))


@pytest.fixture(scope="module")
def server(neo4j_uri: str) -> Iterator[str]:
    loaded = call("load", neo4j_uri, FOLDER / "mountains.csv", "-O", "key=mountain", "--graph", GRAPH, "-q")
    assert loaded.exit_code == 0, loaded.output
    yield neo4j_uri
    with condgraph.open(neo4j_uri, graph=GRAPH) as graph:
        assert isinstance(graph, Neo4jGraph)
        graph.store.delete()


def test_programs_are_answered_and_shown(server: str) -> None:
    found = call("query", "-a", server, "--graph", GRAPH, "--evidence", ABOVE_7500)
    assert found.exit_code == 0, found.output
    assert found.stdout.split("\n")[:4] == ["Annapurna I", "Dhaulagiri I", "Manaslu", "Nanda Devi"]
    assert "Manaslu | height | 8163 m  [mountains, row 2]" in found.stdout
    shown = call("query", "-a", server, "--graph", GRAPH, "--show", ABOVE_7500).stdout
    assert ":param graph => 'command line';" in shown
    assert "MATCH" in shown


def test_the_environment_names_the_server(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONDGRAPH_STORE", raising=False)
    monkeypatch.setenv("NEO4J_URI", server)
    assert json.loads(call("status", "--graph", GRAPH, "--format", "json").stdout)["counts"]["attributes"] > 40


def test_cypher_is_checked_before_it_runs(server: str) -> None:
    text = "MATCH (e:CondgraphEntity {graph: 'command line'}) WHERE e.name STARTS WITH 'Mana' "
    text += "RETURN e.name AS name, labels(e) AS labels"
    found = call("cypher", "-a", server, "--format", "json", text)
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout) == [{"name": "Manaslu", "labels": ["CondgraphEntity", "CondgraphRow"]}]
    assert call("cypher", "-a", server, "MATCH (e) DETACH DELETE e").exit_code == 3


def test_a_graph_on_an_rdf_store_is_deleted_when_it_is_said_twice(virtuoso_server: Any) -> None:
    """Nothing goes before it is confirmed; then one graph goes, and neither another nor what somebody
    keeps beside them.
    """
    at = (f"sparql+{virtuoso_server.query}", "--graph")
    for name in (GRAPH, "another"):
        loaded = call("load", at[0], FOLDER / "mountains.csv", "-O", "key=mountain", *at[1:], name, "-q")
        assert loaded.exit_code == 0, loaded.output

    def count() -> list[int]:
        found = [call("query", "-d", *at, name, "--format", "json", "FindAll() Count()") for name in (GRAPH, "another")]
        return [one.exit_code for one in found]

    endpoint = Endpoint(virtuoso_server.query)
    endpoint.update("INSERT DATA { GRAPH <http://example.org/mine> { <urn:a> <urn:b> 'mine' } }")
    asked = call("delete", "-d", *at, GRAPH)
    assert (asked.exit_code, "--yes" in asked.output) == (2, True)
    assert count() == [0, 0]
    gone = call("delete", "-d", *at, GRAPH, "--yes")
    assert gone.exit_code == 0, gone.output
    assert count() == [3, 0]
    assert call("delete", "-d", *at, GRAPH, "--yes").exit_code == 3
    mine = endpoint.query("SELECT ?o { GRAPH <http://example.org/mine> { ?s ?p ?o } }")
    assert [row["o"].value for row in mine] == ["mine"]


def test_an_rdf_store_may_have_other_addresses_for_updates(oxigraph_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    at = (f"sparql+{oxigraph_server.query}", "--graph", "elsewhere")
    load = ("load", at[0], FOLDER / "mountains.csv", "-O", "key=mountain", *at[1:], "-q")
    refused = call(*load)
    assert refused.exit_code == 1, refused.output  # that address takes queries alone
    assert "SPARQL_UPDATE" in refused.stderr, refused.stderr
    monkeypatch.setenv("SPARQL_UPDATE", oxigraph_server.update)
    monkeypatch.setenv("SPARQL_STORE", oxigraph_server.store)
    loaded = call(*load)
    assert loaded.exit_code == 0, loaded.output
    found = call("query", "-d", *at, "--format", "json", "FindAll() Count()")
    assert found.exit_code == 0, found.output
    assert call("delete", "-d", *at, "--yes").exit_code == 0
    assert call("query", "-d", *at, "FindAll() Count()").exit_code == 3


def test_no_server_is_said(tmp_path: Path) -> None:
    nowhere = call("query", "-a", "bolt://127.0.0.1:9", "-u", "neo4j", "-p", "secret", ABOVE_7500)
    assert nowhere.exit_code == 3
    assert "127.0.0.1:9" in nowhere.stderr
    assert "secret" not in nowhere.output
