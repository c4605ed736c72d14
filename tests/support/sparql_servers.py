"""Real RDF stores for the tests, one of each a session: Virtuoso (Debian's package) and Oxigraph's
server (PyPI's).

Where a program is missing the tests are skipped, and say why; with `CONDGRAPH_SERVICES=1` (as CI
sets it) that is a failure. `tests/conftest.py` takes the fixtures up, so that every folder has them
and each server is started once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.servers import running


@pytest.fixture(scope="session")
def virtuoso_process() -> Iterator[Any]:
    from virtuoso_server import VirtuosoServer

    with running(VirtuosoServer(), "Virtuoso") as server:
        yield server


@pytest.fixture(scope="module")
def virtuoso_server(virtuoso_process: Any) -> Any:
    """A Virtuoso that is up (`tools/virtuoso_server.py`).

    It takes pages that deleted graphs left only after a checkpoint; without any, inserts fail in the end ("out of seg data").
    """
    virtuoso_process.sql("checkpoint;")
    return virtuoso_process


@pytest.fixture(scope="session")
def oxigraph_server() -> Iterator[Any]:
    """An Oxigraph server that is up (`tools/oxigraph_server.py`)."""
    from oxigraph_server import OxigraphServer

    with running(OxigraphServer(), "Oxigraph server") as server:
        yield server
