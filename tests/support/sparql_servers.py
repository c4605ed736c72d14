"""Real RDF stores for the tests: Virtuoso (a Debian package), one for each test file; Oxigraph's server (from PyPI) and
Jena Fuseki (from Maven Central), one for each session.

Without the program, tests are skipped with the reason; with `CONDGRAPH_SERVICES=1` (set in CI) they fail.
`tests/conftest.py` imports the fixtures, so that every folder has them.
"""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import pytest

from condgraph.sparql.dialect import cut
from tests.support.servers import running


@contextmanager
def fresh_virtuoso() -> Iterator[Any]:
    """Start a Virtuoso with an empty database, which takes a second or two."""
    from virtuoso_server import VirtuosoServer

    with running(VirtuosoServer(), "Virtuoso") as server:
        yield server


def fresh_server(name: str, *, limit: int = 120) -> Any:
    """Return an empty server of a store; it ends queries after `limit` seconds, except Virtuoso."""
    if name == "virtuoso":
        return fresh_virtuoso()
    if name == "fuseki":
        from fuseki_server import FusekiServer

        return running(FusekiServer(short=True, limit=limit), "Fuseki")
    from oxigraph_server import OxigraphServer

    return running(OxigraphServer(limit=limit), "Oxigraph server")


def put(server: Any, lines: Sequence[str], graph: str | None = None) -> None:
    """Add lines of N-Triples to a graph of a server (Virtuoso has no default graph)."""
    parameter = "default" if graph is None else f"graph={quote(graph)}"
    for chunk in cut(lines, 20_000):
        request = urllib.request.Request(
            f"{server.store}?{parameter}", "".join(chunk).encode(), {"Content-Type": "application/n-triples"}, method="POST"
        )
        urllib.request.urlopen(request, timeout=300).close()


@pytest.fixture(scope="module")
def virtuoso_server() -> Iterator[Any]:
    """A running Virtuoso (`tools/virtuoso_server.py`), one for each test file.

    After thousands of writes, checkpoints and cancelled queries, a database may accept no more triples ("Insert stopped
    because out of seg data", openlink/virtuoso-opensource#571), so files do not share one.
    """
    with fresh_virtuoso() as server:
        yield server


@pytest.fixture(scope="session")
def oxigraph_server() -> Iterator[Any]:
    """A running Oxigraph server (`tools/oxigraph_server.py`)."""
    from oxigraph_server import OxigraphServer

    with running(OxigraphServer(), "Oxigraph server") as server:
        yield server


@pytest.fixture(scope="session")
def fuseki_server() -> Iterator[Any]:
    """A running Jena Fuseki (`tools/fuseki_server.py`)."""
    from fuseki_server import FusekiServer

    with running(FusekiServer(short=True), "Fuseki") as server:
        yield server
