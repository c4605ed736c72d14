"""Servers that run while a test does; without the program they need, the test is skipped or, in CI, fails."""

from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pytest

from tests.support.progress import starting

TOOLS = Path(__file__).parents[2] / "tools"
if str(TOOLS) not in sys.path:
    sys.path.append(str(TOOLS))

from watched import watched  # noqa: E402 - a tool, found by the path above

if TYPE_CHECKING:
    from service import Service

__all__ = ["arcadedb_address", "arcadedb_server", "running", "watched"]

S = TypeVar("S", bound="Service")


@contextmanager
def running(server: S, what: str, before: Callable[[], object] | None = None) -> Iterator[S]:
    """Start a server after `before`; yield it, then stop it and remove its data.

    If it cannot be started, the test is skipped with the reason; with `CONDGRAPH_SERVICES=1` (set in CI) it fails.
    """
    from service import ServerError

    try:
        try:
            with starting(f"{what} to start"):
                if before is not None:
                    before()
                server.start()
        except ServerError as error:
            if os.environ.get("CONDGRAPH_SERVICES"):
                raise
            pytest.skip(f"no {what}: {error}")
        yield server
    finally:
        server.discard()


@pytest.fixture(scope="session")
def arcadedb_server() -> Iterator[Any]:
    """A running ArcadeDB (`tools/arcadedb_server.py`), one for each worker."""
    from arcadedb_server import ArcadedbServer

    with running(ArcadedbServer(), "ArcadeDB") as server:
        yield server


@pytest.fixture
def arcadedb_address(arcadedb_server: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty database on that server, which is dropped afterwards."""
    name = f"d{zlib.crc32(request.node.nodeid.encode()):08x}"
    arcadedb_server.create(name)
    yield arcadedb_server.address(name)
    arcadedb_server.drop(name)


def missing(what: str) -> NoReturn:
    """Skip the test because a Debian package is missing; with `CONDGRAPH_SERVICES=1`, fail it."""
    if os.environ.get("CONDGRAPH_SERVICES"):
        pytest.fail(what)
    pytest.skip(what)
