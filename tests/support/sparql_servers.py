"""Real RDF stores for the tests: Virtuoso (Debian's package), one for each file of tests; Oxigraph's
server (PyPI's) and Jena Fuseki (Maven Central's), one a session.

Where a program is missing the tests are skipped, and say why; with `CONDGRAPH_SERVICES=1` (as CI
sets it) that is a failure. `tests/conftest.py` takes the fixtures up, so that every folder has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.servers import running


@contextmanager
def fresh_virtuoso() -> Iterator[Any]:
    """A Virtuoso with an empty database, up within a second or two."""
    from virtuoso_server import VirtuosoServer

    with running(VirtuosoServer(), "Virtuoso") as server:
        yield server


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
