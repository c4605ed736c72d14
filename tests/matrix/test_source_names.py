"""Sources of one name on servers, as in process: the same one again, or an error that names both
and changes nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import condgraph
from condgraph.engine.errors import SourceError
from tests.support import same_sources
from tests.support.stores import marked


def test_on_neo4j(neo4j_uri: str, tmp_path: Path) -> None:
    with condgraph.open(neo4j_uri, graph="source names") as graph:
        same_sources.check_names(graph, tmp_path)
        # What is pushed is held to the same.
        with condgraph.open() as local:
            local.load(tmp_path / "feb" / "sales.csv")
            with pytest.raises(SourceError):
                graph.push(local)  # type: ignore[attr-defined]
        assert same_sources.prices(graph) == ["10", "12"]
    with condgraph.open(neo4j_uri, graph="source frames") as graph:
        same_sources.check_frames(graph)


@pytest.mark.parametrize("name", marked("oxigraph", nightly=("virtuoso",)))
def test_on_rdf_stores(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    server: Any = request.getfixturevalue(f"{name}_server")
    for called, check in (("source-names", lambda g: same_sources.check_names(g, tmp_path)), ("frames", same_sources.check_frames)):
        with condgraph.open(f"sparql+{server.query}", graph=called, update=server.update) as graph:
            check(graph)
