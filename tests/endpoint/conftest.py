"""A small store on disk, and an endpoint over it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyoxigraph as ox
import pytest

from condgraph.endpoint.app import Limits
from condgraph.endpoint.backend import OxigraphBackend
from tests.support.serving import serving

GRAPH = "http://example.org/g/"
#: 200 numbers, a text with everything that formats escape, and a second graph.
DATA = "".join(f"<{GRAPH}n{i}> <{GRAPH}value> {i} .\n" for i in range(200)) + (
    f'<{GRAPH}text> <{GRAPH}label> "a \\"quoted\\" }},{{ <b>&amp;\\r\\n, tab\\t"@en .\n'
)
OTHER = f"<{GRAPH}n1> <{GRAPH}other> <{GRAPH}n2> .\n"
#: Ends in no time that anybody has.
RUNAWAY = f"SELECT (COUNT(*) AS ?n) FROM <{GRAPH}> {{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n1 ?o . FILTER(?a = ?o) }}"


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    opened = ox.Store(str(folder))
    opened.load(DATA, ox.RdfFormat.TURTLE, to_graph=ox.NamedNode(GRAPH))
    opened.load(OTHER, ox.RdfFormat.TURTLE, to_graph=ox.NamedNode(GRAPH + "other"))
    opened.flush()
    del opened
    return folder


@pytest.fixture(scope="module")
def endpoint(store: Path) -> Iterator[str]:
    backend = OxigraphBackend(store, graphs=[GRAPH, GRAPH + "other"], default=GRAPH, prefixes={"g": GRAPH})
    with serving(backend, Limits(timeout=5.0, rows=150)) as url:
        yield url
