"""Spans of `condgraph serve`: a request over HTTP is one tree in the trace of its caller, with its queries and without values."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import condgraph
from tests.endpoint.test_serve import command
from tests.studio.conftest import Client
from tests.support.agents import CAPITAL
from tests.support.samples import load_samples
from tests.support.serving import ask

pytest.importorskip("opentelemetry.sdk")
pytestmark = pytest.mark.service

#: An application that collects spans in a file, and then does what `condgraph` does.
COLLECTING = """
import sys
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

file = open(sys.argv.pop(1), "a")
provider = TracerProvider()
exporter = ConsoleSpanExporter(out=file, formatter=lambda span: span.to_json(indent=None) + "\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
from condgraph.cli import main

main()
"""
#: A trace of a caller: the id of the trace and of the span.
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CALLER = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


class Spans:
    """A server, and the spans that it collected."""

    def __init__(self, url: str, file: Path, line: str) -> None:
        self.client, self.file = Client(url), file
        self.bolt = line.partition("; Bolt at ")[2].split()[0].rstrip(";")

    def after(self, name: str) -> list[Any]:
        """All spans so far, once one of this name has ended; each is read once."""
        end = time.monotonic() + 60
        while True:
            spans = [json.loads(line) for line in self.file.read_text().splitlines(keepends=True) if line.endswith("\n")]
            if any(span["name"] == name for span in spans):
                self.file.write_text("")
                return spans
            assert time.monotonic() < end, spans
            time.sleep(0.05)


@pytest.fixture(scope="module")
def spans(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spans]:
    folder = tmp_path_factory.mktemp("spans")
    with condgraph.open(folder / "world") as graph:
        load_samples(graph)
    file = folder / "spans.jsonl"
    start = ("-c", COLLECTING, str(file))
    with command("-d", str(folder / "world"), "--rate", "0", "--workers", "1", "--bolt", "0", start=start) as (url, process):
        yield Spans(url, file, process.line)


def test_a_request_is_one_tree_in_the_trace_of_its_caller(spans: Spans) -> None:
    body = json.dumps({"program": CAPITAL}).encode()
    assert spans.client.send("query", body, **CALLER).status == 200
    query, request = spans.after("POST /api/v1/query")
    assert request["kind"] == "SpanKind.SERVER"
    assert (request["context"]["trace_id"], request["parent_id"]) == (f"0x{TRACE}", f"0x{PARENT}")
    assert request["attributes"] == {"http.request.method": "POST", "http.route": "/api/v1/query", "http.response.status_code": 200}
    assert (query["name"], query["parent_id"]) == ("condgraph query", request["context"]["span_id"])
    assert query["attributes"] == {
        "db.system.name": "condgraph", "db.namespace": "default", "condgraph.store": "folder",
        "condgraph.language": "kopl", "db.response.returned_rows": 1,
    }  # fmt: skip
    assert request["start_time"] <= query["start_time"] <= query["end_time"] <= request["end_time"]


def test_an_error_has_its_code_and_no_values(spans: Spans) -> None:
    body = json.dumps({"program": "Find(Secret) QueryName()"}).encode()
    assert spans.client.send("query", body).status == 400
    query, request = spans.after("POST /api/v1/query")
    assert query["attributes"]["error.type"] == "unknown-name"
    assert query["status"] == {"status_code": "ERROR"}
    assert request["attributes"]["http.response.status_code"] == 400
    assert "Secret" not in json.dumps([query, request])


def test_names_of_graphs_that_clients_made_are_no_part_of_a_span(spans: Spans) -> None:
    _, loaded = spans.client.drop(b"name,people\nBern,134591\n", name="towns.csv", key="name")
    spans.after("POST /api/v1/graphs")
    ask(spans.client.url, "DELETE", f"/api/v1/graphs/{loaded['graph']}")
    found = spans.after("DELETE /api/v1/graphs/{graph}")
    assert loaded["graph"] not in json.dumps(found)


def test_a_query_of_the_sparql_protocol_is_a_tree_too(spans: Spans) -> None:
    query = quote("SELECT ?x { ?x <secret> ?y }")
    assert ask(spans.client.url, "GET", f"/sparql?query={query}", headers=CALLER).status == 200
    run, request = spans.after("GET /sparql")
    assert (request["parent_id"], run["parent_id"]) == (f"0x{PARENT}", request["context"]["span_id"])
    assert (run["attributes"]["condgraph.language"], run["attributes"]["condgraph.store"]) == ("sparql", "folder")
    assert "secret" not in json.dumps([run, request])


def test_a_query_over_bolt_is_a_span(spans: Spans) -> None:
    neo4j = pytest.importorskip("neo4j")
    with neo4j.GraphDatabase.driver(spans.bolt) as driver:
        rows = driver.execute_query("MATCH (n {name: $name}) RETURN n.name", name="Nepal").records
    assert len(rows) == 1
    assert [span["attributes"]["db.response.returned_rows"] for span in spans.after("condgraph query")] == [1]
