"""A real Neo4j for the tests: `NEO4J_URI` where it is set, else one started from Maven's jars, stopped at the end.

Where neither can be had the tests are skipped, and say why; with `CONDGRAPH_SERVICES=1` (as CI sets it) that is a failure.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "neo4j_server.py"


def server_tool() -> Any:
    spec = importlib.util.spec_from_file_location("neo4j_server", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def neo4j_uri() -> Iterator[str]:
    """The address of a server that is up."""
    pytest.importorskip("neo4j") if not os.environ.get("CONDGRAPH_SERVICES") else None
    given = os.environ.get("NEO4J_URI")
    if given:
        yield given
        return
    tool = server_tool()
    server = tool.Neo4jServer()
    try:
        server.start()
    except tool.ServerError as error:
        server.remove()
        if os.environ.get("CONDGRAPH_SERVICES"):
            raise
        pytest.skip(f"no Neo4j: {error}")
    yield server.uri
    server.stop()
    server.remove()
