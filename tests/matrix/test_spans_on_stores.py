"""Each query of a store is one span of OpenTelemetry that names the kind of store, whatever the language; so is one that fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError
from tests.support.agents import CAPITAL
from tests.support.samples import load_samples
from tests.support.stores import empty_graph, marked

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

KINDS = {"oxigraph": "sparql", "virtuoso": "sparql", "fuseki": "sparql"}


@pytest.fixture(scope="module", params=marked("duckdb", "oxigraph", nightly=("neo4j",)))
def store(request: pytest.FixtureRequest) -> Iterator[tuple[str, Any]]:
    with empty_graph(request, "spans") as graph:
        load_samples(graph)
        yield KINDS.get(request.param, request.param), graph


def test_each_query_of_a_store_is_one_span(store: tuple[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    kind, graph = store
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    prepared = graph.prepare("Find($x) Relate(capital, forward) QueryName()")
    for ask, language, told in (
        (lambda: graph.kopl(CAPITAL), "kopl", 1),
        (lambda: graph.query('MATCH (n {name: "Nepal"}) RETURN n.name'), "cypher", 1),
        (lambda: graph.query("SELECT ?n { ?x <pred:name> ?n } LIMIT 2", language="sparql"), "sparql", 2),
        (lambda: graph.match("(UNKNOWN 1) <-[capital]- (Nepal)", k=1), "pattern", 1),
        (lambda: graph.logic('?x : capital("Nepal", ?x)'), "logic", 1),
        (lambda: prepared(x="Nepal"), "kopl", 1),
        (lambda: list(graph.kopl(CAPITAL).evidence), "kopl", 1),
        (lambda: graph.kopl("Find(Secret) QueryName()"), "kopl", "unknown-name"),
        (lambda: graph.kopl(CAPITAL, timeout=1e-6), "kopl", "deadline"),
    ):
        spans.clear()
        try:
            ask()
        except CondgraphError:
            assert isinstance(told, str)
        (span,) = spans.get_finished_spans()
        about = dict(span.attributes or {})
        assert (about["condgraph.store"], about["condgraph.language"], about["db.namespace"]) == (kind, language, "spans")
        assert about.get("db.response.returned_rows", about.get("error.type")) == told
        assert (span.status.status_code is trace.StatusCode.ERROR) is isinstance(told, str)
        assert not [word for word in ("Nepal", "Secret", "Kathmandu") if word in span.to_json()]


@pytest.fixture
def triples(oxigraph_server: Any) -> Iterator[Any]:
    """Triples that condgraph did not write, asked where they are."""
    facts = "DATA { <urn:a> <urn:knows> <urn:b> . <urn:a> a <urn:C> . <urn:b> a <urn:C> }"
    with condgraph.open(f"sparql+{oxigraph_server.query}", update=oxigraph_server.update, graph="unused") as ours:
        ours.store.endpoint.update(f"INSERT {facts}")
        with condgraph.open(f"sparql+{oxigraph_server.query}", layout="native") as graph:
            yield graph
        ours.store.endpoint.update(f"DELETE {facts}")


def test_triples_in_place_are_told_as_well(triples: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    assert triples.kopl('FindAll() FilterConcept("urn:C") Count()').values == [2]
    (span,) = spans.get_finished_spans()
    assert (span.attributes or {})["condgraph.store"] == "sparql"
