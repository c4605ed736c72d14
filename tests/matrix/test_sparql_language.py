"""SPARQL as a language of programs on stores: rows, evidence and warnings are those in process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from condgraph.engine.errors import UnsupportedError
from tests.frontends.test_sparql import BY_HAND, films
from tests.matrix.test_cypher_language import outcome
from tests.support.lanes import by_lane
from tests.support.sparql_queries import Maker
from tests.support.stores import asked_of, empty_graph, marked


@pytest.fixture(params=marked("neo4j", "oxigraph", "duckdb", nightly=("virtuoso", "fuseki")))
def there(request: pytest.FixtureRequest) -> Iterator[Any]:
    with empty_graph(request, "films in SPARQL") as graph:
        yield graph


def without_reasons(found: tuple[Any, ...]) -> tuple[Any, ...]:
    """An outcome without the reason of an empty answer: of parts that are joined, stores may name either."""
    kept = [[one for one in part if "answer is empty" not in str(one)] if isinstance(part, list) else part for part in found]
    return tuple(kept)


def test_stores_answer_as_in_process(there: Any) -> None:
    here = films()
    there.push(here)
    maker = Maker.of_rdf(here.rdf(), random.Random(11))
    texts = [*BY_HAND, *(maker.query() for _ in range(by_lane(60, 600, 3_000)))][:: by_lane(12, 1, 1)]
    texts = asked_of(there, texts, 2)
    answered = 0
    for text in texts:
        options = {"language": "sparql", "base": "http://condgraph.example/default/"}
        found, wanted = (without_reasons(outcome(graph, text, **options)) for graph in (there, here))
        assert found == wanted, text
        answered += wanted[0] != UnsupportedError.__name__
    assert answered > 0.6 * len(texts)
