"""The studio's API on every kind of store: a folder, Neo4j, an RDF store give the same."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import condgraph
from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.studio.test_api import HIGH, PROGRAMS, Judge
from tests.support.lanes import sample
from tests.support.samples import load_samples

pytestmark = pytest.mark.service


@contextmanager
def on_server(place: str, graph: str, **options: Any) -> Iterator[None]:
    with condgraph.open(place, graph=graph, **options) as opened:
        load_samples(opened)
        try:
            yield
        finally:
            opened.delete()


def compared(client: Client, served: Client, *, foreign: str, step: int = 1) -> None:
    """Compare what two servers answer; of what is asked in several ways every `step`-th in the gate."""
    judge = Judge(client)
    about = client.get("about")
    judge.check("About", about)
    assert foreign in about["languages"]
    assert about["counts"]["entities"] == served.get("about")["counts"]["entities"]
    for language in sample(("kopl", "llm_query", "logic", "pattern"), step):
        here, there = (one.post("query", program=PROGRAMS[language][0]) for one in (client, served))
        judge.check("Answer", here)
        assert here["rows"] == there["rows"], language
        for found in (here, there):  # where several stand side by side, no store has an order
            found["evidence"]["facts"].sort(key=lambda one: one["text"])
        assert here["evidence"] == there["evidence"], language
        assert [one["size"] for one in here["trace"]] == [one["size"] for one in there["trace"]]
    assert client.post("tree", program=HIGH) == served.post("tree", program=HIGH)
    here, there = client.get("entity", id="Nepal"), served.get("entity", id="Nepal")
    judge.check("EntityPage", here)
    for name in ("entity", "facts", "pointing", "concepts"):
        assert here[name] == there[name], name
    assert here["concepts"]
    here, there = (one.get("entity", id="Nepal", predicate="country", backward="true", limit=9) for one in (client, served))
    assert (here["pointing"], here["facts"], here["groups"]) == (there["pointing"], [], there["groups"])
    assert len(here["pointing"]) == 3
    here, there = client.get("entity", id="country"), served.get("entity", id="country")
    assert sorted(one["id"] for one in here["members"]) == sorted(one["id"] for one in there["members"])
    assert client.get("entity", name="Nepal", limit=1)["more"]
    for text in sample(("anna", "Nep", "heigh"), step):
        assert client.get("names", text=text) == served.get("names", text=text)
        assert client.get("names", text=text, ids="true") == served.get("names", text=text, ids="true")
    assert client.get("entity", name="Nepall")["error"]["candidates"][0] == "Nepal"
    assert client.post("query", program="Find(Nepall) QueryName()")["error"]["candidates"][0] == "Nepal"
    judge.check("Schema", client.get("schema"))
    # A scratch graph is in a folder beside it.
    status, report = client.drop(b"city,people\nOslo,700000\n", name="cities.csv", key="city")
    assert status == 200
    assert client.post("query", program="FindAll() QueryName()", graph=report["graph"])["rows"][0][0]["text"] == "Oslo"


def test_neo4j(neo4j_uri: str, served: Client) -> None:
    name = f"studio{uuid.uuid4().hex[:8]}"
    with on_server(neo4j_uri, name), command("-d", neo4j_uri, "--graph", name, "--rate", "0", "--workers", "2") as (url, _):
        client = Client(url)
        compared(client, served, foreign="cypher", step=3)
        # Other tests leave graphs in the same database.
        own = f"MATCH (e:CondgraphEntity {{graph: '{name}', name: 'Nepal'}}) RETURN e.name AS name"
        found = client.post("query", program=own, language="cypher")
        assert [row[0]["text"] for row in found["rows"]] == ["Nepal"]
        assert "error" in client.post("query", program="CREATE (n:Mine) RETURN n", language="cypher")
        assert client.post("query", program="SELECT * { ?s ?p ?o }", language="sparql")["error"]["code"] == "unsupported"
        assert client.post("query", program=HIGH)["compiled"]["sparql"] is None
        login = os.environ.get("NEO4J_PASSWORD")
        assert login is None or login not in str(client.get("about"))


def test_an_rdf_store(oxigraph_server: Any, served: Client) -> None:
    name = f"studio{uuid.uuid4().hex[:8]}"
    place = f"sparql+{oxigraph_server.query}"
    with (
        on_server(place, name, update=oxigraph_server.update),
        command("-d", place, "--graph", name, "--rate", "0", "--workers", "2") as (url, _),
    ):
        client = Client(url)
        compared(client, served, foreign="sparql")
        found = client.post("query", program=PROGRAMS["sparql"][0], language="sparql")
        assert [row[0]["text"] for row in found["rows"]] == PROGRAMS["sparql"][1]


@pytest.mark.slow
def test_a_sql_database(tmp_path: Path, served: Client) -> None:
    place, name = f"duckdb:///{tmp_path}/graphs.duckdb", "studio"
    with condgraph.open(place, graph=name) as opened:
        load_samples(opened)
    with command("-d", place, "--graph", name, "--rate", "0", "--workers", "2") as (url, _):
        client = Client(url)
        compared(client, served, foreign="cypher")
        assert client.get("about")["store"] == "in a SQL database"
        names = "SELECT ?n { ?x <pred:name> ?n ; <pred:instance_of>/<pred:name> 'country' FILTER(?n = 'Nepal') }"
        found = client.post("query", program=names, language="sparql")
        assert [row[0]["text"] for row in found["rows"]] == ["Nepal"]
