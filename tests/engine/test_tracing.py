"""Spans of OpenTelemetry and lines of `logging`: one for each query of any kind, without values."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import CondgraphError, DeadlineError
from condgraph.engine.facts import Statement
from condgraph.engine.tracing import LOGGER
from condgraph.graph import Graph
from tests.ask.asking import Scripted
from tests.support.agents import CAPITAL, samples

pytest.importorskip("opentelemetry.sdk")

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@pytest.fixture(scope="module")
def graph() -> Graph:
    return samples()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Where spans come to; the provider is that of this test alone."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    return exporter


#: A query of each kind, the language of its span, and its rows (None: an error).
QUERIES: list[tuple[Callable[[Graph], Any], str, int | None]] = [
    (lambda graph: graph.kopl(CAPITAL), "kopl", 1),
    (lambda graph: graph.query("FindAll() FilterConcept(country)", table="show count()"), "kopl", 1),
    (lambda graph: graph.query('MATCH (n {name: "Nepal"}) RETURN n.name'), "cypher", 1),
    (lambda graph: graph.cypher("RETURN $x AS x", {"x": 1}), "cypher", 1),
    (lambda graph: graph.query('?x : capital("Nepal", ?x)'), "logic", 1),
    (lambda graph: graph.logic('?x : capital("Nepal", ?x)'), "logic", 1),
    (lambda graph: graph.match("(UNKNOWN 1) <-[capital]- (Nepal)", k=1), "pattern", 1),
    (lambda graph: graph.sparql("SELECT ?x { ?x <capital> ?y } LIMIT 2"), "sparql", 2),
    (lambda graph: graph.prepare("Find($x) Relate(capital, forward) QueryName()")(x="Nepal"), "kopl", 1),
    (lambda graph: graph.prepare("(UNKNOWN 1) <-[capital]- ($x)")(x="Nepal"), "pattern", 3),
    (lambda graph: graph.at("1984").kopl(CAPITAL), "kopl", 1),
    (lambda graph: graph.kopl(CAPITAL, prefer={"capital": "latest"}), "kopl", 1),
    (lambda graph: graph.kopl(CAPITAL, timeout=60.0), "kopl", 1),
    (lambda graph: graph.kopl("Find(Secret) QueryName()"), "kopl", None),
    (lambda graph: graph.query("Secret"), "unknown", None),
]


@pytest.mark.parametrize("case", range(len(QUERIES)))
def test_each_query_is_one_span(graph: Graph, spans: InMemorySpanExporter, case: int) -> None:
    ask, language, rows = QUERIES[case]
    try:
        ask(graph)
    except CondgraphError:
        assert rows is None
    (span,) = spans.get_finished_spans()
    about = dict(span.attributes or {})
    assert (about["condgraph.language"], about["condgraph.store"]) == (language, "memory")
    assert about.get("db.response.returned_rows") == rows
    assert span.status.is_ok is (rows is not None) or span.status.is_unset
    assert "Nepal" not in span.to_json()
    assert "Secret" not in span.to_json()


def test_a_prepared_program_that_is_ready_has_a_span_too(graph: Graph, spans: InMemorySpanExporter) -> None:
    prepared = graph.prepare("Find($x) Relate(capital, forward) QueryName()")
    for _ in range(3):
        prepared(x="Nepal")
    assert len(spans.get_finished_spans()) == 3


def test_each_program_of_a_question_in_words_is_one_span(graph: Graph, spans: InMemorySpanExporter) -> None:
    wrong, right = (f"Query1: \"get_information(relation='capital', head_entity='{name}')\"" for name in ("Secret land", "Nepal"))
    outcome = graph.ask("What is the capital of Nepal?", Scripted(wrong, right))
    assert outcome.texts == ["Kathmandu"]
    # A program may run more than once, until its names are those of the graph.
    failed, *others, done = spans.get_finished_spans()
    assert (failed.attributes or {})["error.type"] == "unknown-name"
    assert (done.attributes or {})["db.response.returned_rows"] == 1
    assert all((one.attributes or {})["condgraph.language"] == "llm_query" for one in (failed, *others, done))
    assert not [word for word in ("Nepal", "Secret", "Kathmandu") for one in (failed, *others, done) if word in one.to_json()]


def test_a_query_of_several_stores_is_one_span(graph: Graph, spans: InMemorySpanExporter) -> None:
    with condgraph.open("memory:") as other:
        other.add([Statement("Nepal", "dial code", "977")], source="codes")
        both = condgraph.open({"one": graph, "other": other})
        both.kopl(CAPITAL)
        with pytest.raises(DeadlineError):
            both.kopl(CAPITAL, timeout=1e-9)
    done, late = spans.get_finished_spans()
    assert (done.attributes or {})["condgraph.store"] == "several"
    assert (done.attributes or {})["db.response.returned_rows"] == 1
    assert (late.attributes or {})["error.type"] == "deadline"
    assert late.status.status_code is trace.StatusCode.ERROR
    # How long it took is the span's own.
    assert (done.end_time or 0) > (done.start_time or 0)


def test_spans_are_below_that_of_the_application(graph: Graph, spans: InMemorySpanExporter) -> None:
    with trace.get_tracer_provider().get_tracer("app").start_as_current_span("request"):
        graph.kopl(CAPITAL)
    below, above = spans.get_finished_spans()
    assert (above.name, below.name) == ("request", "condgraph query")
    assert below.parent is not None
    assert below.parent.span_id == above.context.span_id  # type: ignore[union-attr]


def test_values_where_they_are_asked_for(
    graph: Graph, spans: InMemorySpanExporter, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def both() -> tuple[ReadableSpan, ...]:
        graph.kopl(CAPITAL)
        with pytest.raises(CondgraphError):
            graph.kopl("Find(Secret) QueryName()")
        return spans.get_finished_spans()

    with caplog.at_level(logging.DEBUG, logger=LOGGER):
        _, failed = both()
        assert failed.attributes is not None
        assert failed.attributes["error.type"] == "unknown-name"
        first, second = caplog.messages
        assert first.startswith("kopl on memory: 1 rows in ")
        assert second.startswith("kopl on memory: error unknown-name in ")
        monkeypatch.setenv("CONDGRAPH_TRACE_PROGRAMS", "1")
        *_, done, failed = both()
        assert (done.attributes or {})["db.query.text"] == CAPITAL
        assert "'Secret'" in (failed.status.description or "")
        assert caplog.messages[2].endswith(CAPITAL)
        assert "unknown entity 'Secret'" in caplog.messages[3]


def test_nothing_is_imported_for_it() -> None:
    code = """
import sys, condgraph
graph = condgraph.open()
graph.add([condgraph.Entity("a", "Ann")])
assert graph.kopl("Find(Ann) QueryName()").texts == ["Ann"]
print([name for name in sys.modules if name.split(".")[0] == "opentelemetry"])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
