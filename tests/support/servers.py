"""A server of a test's own: up while the test runs; without the program it needs the test is
skipped, in CI it fails.
"""

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
    """A server that was started, after `before` was done; it is stopped and its data removed at the
    end.

    Where it cannot be had the test is skipped and says why; with `CONDGRAPH_SERVICES=1` (as CI sets
    it) that is a failure.
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
    """An ArcadeDB that is up (`tools/arcadedb_server.py`), one for each worker."""
    from arcadedb_server import ArcadedbServer

    with running(ArcadedbServer(), "ArcadeDB") as server:
        yield server


@pytest.fixture
def arcadedb_address(arcadedb_server: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty database of that server, which is gone afterwards."""
    name = f"d{zlib.crc32(request.node.nodeid.encode()):08x}"
    arcadedb_server.create(name)
    yield arcadedb_server.address(name)
    arcadedb_server.drop(name)


def missing(what: str) -> NoReturn:
    """A server of Debian's packages is not on the machine: the test is skipped and says why; with
    `CONDGRAPH_SERVICES=1` that is a failure.
    """
    if os.environ.get("CONDGRAPH_SERVICES"):
        pytest.fail(what)
    pytest.skip(what)
