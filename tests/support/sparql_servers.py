"""Real RDF stores for the tests, one of each a session: Virtuoso (Debian's package) and Oxigraph's server (PyPI's).

Where a program is missing the tests are skipped, and say why; with `CONDGRAPH_SERVICES=1` (as CI sets it) that is a failure.
`tests/conftest.py` takes the fixtures up, so that every folder has them and each server is started once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
if str(TOOLS) not in sys.path:
    sys.path.append(str(TOOLS))


def _up(kind: Any, error: type[Exception], what: str) -> Iterator[Any]:
    server = kind()
    try:
        server.start()
    except error as problem:
        server.stop()
        server.remove()
        if os.environ.get("CONDGRAPH_SERVICES"):
            raise
        pytest.skip(f"no {what}: {problem}")
    yield server
    server.stop()
    server.remove()


@pytest.fixture(scope="session")
def virtuoso_server() -> Iterator[Any]:
    """A Virtuoso that is up (`tools/virtuoso_server.py`)."""
    from service import ServerError
    from virtuoso_server import VirtuosoServer

    yield from _up(VirtuosoServer, ServerError, "Virtuoso")


@pytest.fixture(scope="session")
def oxigraph_server() -> Iterator[Any]:
    """An Oxigraph server that is up (`tools/oxigraph_server.py`)."""
    from oxigraph_server import OxigraphServer
    from service import ServerError

    yield from _up(OxigraphServer, ServerError, "Oxigraph server")
