"""Real RDF stores for the tests: Virtuoso (Debian's package), one for each file of tests; Oxigraph's
server (PyPI's) and Jena Fuseki (Maven Central's), one a session.

Where a program is missing the tests are skipped, and say why; with `CONDGRAPH_SERVICES=1` (as CI
sets it) that is a failure. `tests/conftest.py` takes the fixtures up, so that every folder has them.
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
    """A Virtuoso with an empty database, up within a second or two."""
    from virtuoso_server import VirtuosoServer

    with running(VirtuosoServer(), "Virtuoso") as server:
        yield server


def fresh_server(name: str, *, limit: int = 120) -> Any:
    """A server of a store with nothing in it, which ends queries after so many seconds (Virtuoso: never)."""
    if name == "virtuoso":
        return fresh_virtuoso()
    if name == "fuseki":
        from fuseki_server import FusekiServer

        return running(FusekiServer(short=True, limit=limit), "Fuseki")
    from oxigraph_server import OxigraphServer

    return running(OxigraphServer(limit=limit), "Oxigraph server")


def put(server: Any, lines: Sequence[str], graph: str | None = None) -> None:
    """Put lines of N-Triples into a graph of a server (Virtuoso has no default graph)."""
    where = "default" if graph is None else f"graph={quote(graph)}"
    for some in cut(lines, 20_000):
        asked = urllib.request.Request(
            f"{server.store}?{where}", "".join(some).encode(), {"Content-Type": "application/n-triples"}, method="POST"
        )
        urllib.request.urlopen(asked, timeout=300).close()


@pytest.fixture(scope="module")
def virtuoso_server() -> Iterator[Any]:
    """A Virtuoso that is up (`tools/virtuoso_server.py`), one for each file of tests.

    After thousands of writes, checkpoints and queries that were cut off, one database may take no
    more triples ("Insert stopped because out of seg data", openlink/virtuoso-opensource#571), so
    that no file goes on with another's.
    """
    with fresh_virtuoso() as server:
        yield server


@pytest.fixture(scope="session")
def oxigraph_server() -> Iterator[Any]:
    """An Oxigraph server that is up (`tools/oxigraph_server.py`)."""
    from oxigraph_server import OxigraphServer

    with running(OxigraphServer(), "Oxigraph server") as server:
        yield server


@pytest.fixture(scope="session")
def fuseki_server() -> Iterator[Any]:
    """A Jena Fuseki that is up (`tools/fuseki_server.py`)."""
    from fuseki_server import FusekiServer

    with running(FusekiServer(short=True), "Fuseki") as server:
        yield server
